#include "lib/format/measure_range.h"

#include <fmt/format.h>

#include <limits>

#include "lib/recipe/catalog/task.h"

namespace scaletrain::format {
namespace {

constexpr double kLargestDouble = std::numeric_limits<double>::max();

}  // namespace

std::string MeasureRange::text() const {
  if (highest < kLargestDouble) return fmt::format("from {} to {}", lowest, highest);
  return lowest > -kLargestDouble ? fmt::format("at least {}", lowest) : "finite";
}

MeasureRange measure_range(std::string_view measure) {
  // The whole name if there is no slash.
  const std::string_view name = measure.substr(measure.rfind('/') + 1);
  for (const recipe::TaskRow& task : recipe::tasks()) {
    const recipe::Measure* const known = task.measure(name);
    if (known == nullptr) continue;
    if (known->kind == recipe::Measure::Kind::kShare) return {.lowest = 0, .highest = 1};
    return {.lowest = 0, .highest = kLargestDouble};
  }
  return {.lowest = -kLargestDouble, .highest = kLargestDouble};
}

}  // namespace scaletrain::format
