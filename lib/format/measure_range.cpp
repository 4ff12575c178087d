#include "lib/format/measure_range.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

namespace scaletrain::format {
namespace {

constexpr std::array<std::string_view, 5> kShareMeasures{"top1", "top5", "map", "micro_f1",
                                                         "macro_f1"};
constexpr std::array<std::string_view, 3> kNumberMeasures{"loss", "perplexity", "bits_per_byte"};
constexpr double kLargestDouble = std::numeric_limits<double>::max();

}  // namespace

std::string MeasureRange::text() const {
  if (highest < kLargestDouble) return fmt::format("from {} to {}", lowest, highest);
  return lowest > -kLargestDouble ? fmt::format("at least {}", lowest) : "finite";
}

MeasureRange measure_range(std::string_view measure) {
  const std::string_view name = measure.substr(measure.rfind('/') + 1);  // all of it without one
  if (std::ranges::find(kShareMeasures, name) != kShareMeasures.end())
    return {.lowest = 0, .highest = 1};
  if (std::ranges::find(kNumberMeasures, name) != kNumberMeasures.end())
    return {.lowest = 0, .highest = kLargestDouble};
  return {.lowest = -kLargestDouble, .highest = kLargestDouble};
}

}  // namespace scaletrain::format
