// Valid values of a validation measure, by its name in state.json.
#pragma once

#include <string>
#include <string_view>

namespace scaletrain::format {

struct MeasureRange {
  double lowest = 0, highest = 0;

  bool contains(double value) const { return value >= lowest && value <= highest; }
  std::string text() const;  // "from 0 to 1", "at least 0"
};

// `measure`: a measure of lib/recipe/catalog/tasks.def, "top1", or "ema/top1" for averaged weights.
// Shares of samples or classes are from 0 to 1; losses and values computed from them are at least
// 0; an unknown name may have any finite value.
MeasureRange measure_range(std::string_view measure);

}  // namespace scaletrain::format
