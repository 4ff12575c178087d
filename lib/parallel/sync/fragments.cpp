#include "lib/parallel/sync/fragments.h"

#include <algorithm>

#include "lib/format/piece.h"

namespace scaletrain::parallel {
namespace {

std::int64_t whole_elements(const units::NamedParameter& parameter) {
  return parameter.shape.empty() ? parameter.tensor.numel()
                                 : format::element_count(parameter.shape);
}

}  // namespace

// By the middle of each parameter.
Fragments divide_in_fragments(const std::vector<units::NamedParameter>& model, std::int64_t count) {
  std::int64_t all = 0, before = 0;
  for (const units::NamedParameter& parameter : model) all += whole_elements(parameter);
  Fragments fragments;
  for (const units::NamedParameter& parameter : model) {
    const std::int64_t elements = whole_elements(parameter);
    fragments.of[parameter.name] =
        std::min((2 * before + elements) * count / std::max<std::int64_t>(2 * all, 1), count - 1);
    before += elements;
  }
  return fragments;
}

}  // namespace scaletrain::parallel
