#include "lib/recipe/schema/range.h"

#include <fmt/format.h>

#include <cmath>

namespace scaletrain::recipe {
namespace {

// Returns whole numbers without an exponent: 1000000, not 1e+06.
std::string shown(double value) {
  return value == std::floor(value) ? fmt::format("{:.0f}", value) : fmt::format("{}", value);
}

}  // namespace

std::string Range::phrase() const {
  if (std::isinf(most)) {
    return above_least ? "above " + shown(least) : "of at least " + shown(least);
  }
  if (!above_least && !below_most) {
    return fmt::format("from {} to {}", shown(least), shown(most));
  }
  return fmt::format("{} {} and {} {}", above_least ? "above" : "of at least", shown(least),
                     below_most ? "below" : "at most", shown(most));
}

}  // namespace scaletrain::recipe
