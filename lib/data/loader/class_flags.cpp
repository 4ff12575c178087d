#include "lib/data/loader/class_flags.h"

#include <fmt/format.h>

#include <algorithm>

#include "lib/format/tar/label_text.h"

namespace scaletrain::data {
namespace {

// True for a list with a zero or one for each class. A class alone is no row.
bool is_row(std::span<const std::int64_t> labels, std::size_t classes) {
  return classes > 1 && labels.size() == classes && format::is_zeros_and_ones(labels);
}

std::optional<LabelProblem> set_row(std::span<const std::int64_t> labels,
                                    std::span<std::uint8_t> flags) {
  if (labels.size() != flags.size() || !format::is_zeros_and_ones(labels)) {
    return LabelProblem{
        fmt::format("is not a list of {} zeros and ones, as /data/label_format requires",
                    flags.size()),
        R"(correct the label or /model/num_classes; "label_format": )"
        R"("class_numbers" reads lists of classes)"};
  }
  std::copy(labels.begin(), labels.end(), flags.begin());
  return std::nullopt;
}

}  // namespace

std::optional<LabelProblem> check_label(std::int64_t label, std::int64_t num_classes) {
  if (label < num_classes) return std::nullopt;
  return LabelProblem{fmt::format("label {} is not in 0..{}", label, num_classes - 1),
                      "correct the label, or set /model/num_classes"};
}

std::optional<LabelProblem> set_class_flags(std::span<const std::int64_t> labels, ListFormat format,
                                            std::span<std::uint8_t> flags) {
  if (format == ListFormat::kMultiHot) return set_row(labels, flags);
  if (format == ListFormat::kAuto && is_row(labels, flags.size())) {
    return LabelProblem{
        fmt::format("is a list of {} zeros and ones, one for each class", labels.size()),
        R"(set "label_format": "multi_hot" in "data" to read it so; "class_numbers" reads it as )"
        "the classes 0 and 1"};
  }
  std::fill(flags.begin(), flags.end(), std::uint8_t{0});
  for (const std::int64_t label : labels) {
    if (auto problem = check_label(label, std::ssize(flags))) return problem;
    std::uint8_t& flag = flags[static_cast<std::size_t>(label)];
    if (flag != 0) {
      return LabelProblem{
          fmt::format("names class {} twice", label),
          R"(correct the label; "label_format": "multi_hot" in "data" reads a zero )"
          "or one for each class"};
    }
    flag = 1;
  }
  return std::nullopt;
}

}  // namespace scaletrain::data
