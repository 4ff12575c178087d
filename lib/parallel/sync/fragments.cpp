#include "lib/parallel/sync/fragments.h"

#include <algorithm>

#include "lib/format/piece.h"

namespace scaletrain::parallel {
namespace {

constexpr std::int64_t kMessageElements = 8 << 20;  // 32 MiB of fp32

std::int64_t whole_elements(const units::NamedParameter& parameter) {
  return parameter.shape.empty() ? parameter.tensor.numel()
                                 : format::element_count(parameter.shape);
}

}  // namespace

// A parameter belongs to the fragment in which its middle lies.
Fragments divide_in_fragments(const std::vector<units::NamedParameter>& model, std::int64_t count,
                              const std::set<std::string>& alone) {
  std::int64_t all = 0, before = 0;
  for (const units::NamedParameter& parameter : model) all += whole_elements(parameter);
  Fragments fragments;
  std::int64_t in_message = 0;
  bool ends_here = true;
  for (const units::NamedParameter& parameter : model) {
    const std::int64_t elements = whole_elements(parameter);
    const std::int64_t fragment =
        std::min((2 * before + elements) * count / std::max<std::int64_t>(2 * all, 1), count - 1);
    const bool is_alone = alone.contains(parameter.name);
    if (ends_here || is_alone || fragments.of_message.back() != fragment ||
        in_message + elements > kMessageElements) {
      fragments.of_message.push_back(fragment);
      in_message = 0;
    }
    fragments.message_of[parameter.name] =
        static_cast<std::int64_t>(fragments.of_message.size()) - 1;
    in_message += elements;
    ends_here = is_alone;
    before += elements;
  }
  return fragments;
}

}  // namespace scaletrain::parallel
