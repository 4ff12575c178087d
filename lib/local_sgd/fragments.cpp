#include "lib/local_sgd/fragments.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "lib/format/checkpoint/piece.h"

namespace scaletrain::local_sgd {
namespace {

constexpr std::int64_t kMessageElements = 8 << 20;  // 32 MiB of fp32

std::int64_t whole_elements(const units::NamedParameter& parameter) {
  return format::element_count(parameter.shape());
}

}  // namespace

// Puts a parameter into the fragment that contains its middle element.
Fragments divide_in_fragments(const std::vector<units::NamedParameter>& model, std::int64_t count,
                              const std::map<std::string, std::int64_t>& sets) {
  struct Message {
    std::int64_t number, elements;
  };
  std::int64_t all = 0, before = 0;
  for (const units::NamedParameter& parameter : model) all += whole_elements(parameter);
  Fragments fragments;
  std::map<std::pair<std::int64_t, std::int64_t>, Message> open;  // keyed by (fragment, set)
  for (const units::NamedParameter& parameter : model) {
    const std::int64_t elements = whole_elements(parameter);
    const std::int64_t fragment =
        std::min((2 * before + elements) * count / std::max<std::int64_t>(2 * all, 1), count - 1);
    const auto set = sets.find(parameter.name);
    const auto [found, is_new] =
        open.try_emplace({fragment, set == sets.end() ? -1 : set->second}, Message{});
    Message& message = found->second;
    if (is_new || message.elements + elements > kMessageElements) {
      message = {.number = std::ssize(fragments.of_message), .elements = 0};
      fragments.of_message.push_back(fragment);
    }
    fragments.message_of[parameter.name] = message.number;
    message.elements += elements;
    before += elements;
  }
  return fragments;
}

}  // namespace scaletrain::local_sgd
