#include "lib/format/tar/label_text.h"

#include <algorithm>

#include "lib/core/text/text.h"

namespace scaletrain::format {
namespace {

constexpr std::string_view kSpace = " \t\r\n";  // as a file written by `echo` has it

std::string_view without_space(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(kSpace), text.size()));
  return text.substr(0, text.find_last_not_of(kSpace) + 1);
}

}  // namespace

std::optional<std::int64_t> parse_label(std::string_view text) {
  text = without_space(text);
  const auto label = core::parse_number<std::int32_t>(text);
  return label && *label >= 0 ? std::optional<std::int64_t>(*label) : std::nullopt;
}

std::optional<std::vector<std::int64_t>> parse_labels(std::string_view text) {
  text = without_space(text);
  const bool is_json = text.size() >= 2 && text.front() == '[' && text.back() == ']';
  if (is_json) text = without_space(text.substr(1, text.size() - 2));
  std::vector<std::int64_t> labels;
  if (text.empty()) return is_json ? std::make_optional(labels) : std::nullopt;
  const bool has_commas = is_json || text.find(',') != std::string_view::npos;
  while (!text.empty()) {
    const std::size_t end = has_commas ? text.find(',') : text.find_first_of(kSpace);
    const auto label = parse_label(text.substr(0, end));
    if (!label) return std::nullopt;
    labels.push_back(*label);
    if (end == std::string_view::npos) return labels;
    text = text.substr(end + 1);
    if (!has_commas) text = without_space(text);
  }
  return std::nullopt;  // a comma at the end
}

std::optional<std::int64_t> repeated_label(std::span<const std::int64_t> labels) {
  std::vector<std::int64_t> sorted(labels.begin(), labels.end());
  std::sort(sorted.begin(), sorted.end());
  const auto found = std::adjacent_find(sorted.begin(), sorted.end());
  return found == sorted.end() ? std::nullopt : std::make_optional(*found);
}

bool is_zeros_and_ones(std::span<const std::int64_t> labels) {
  return std::all_of(labels.begin(), labels.end(),
                     [](std::int64_t label) { return label == 0 || label == 1; });
}

}  // namespace scaletrain::format
