// Compares two sets of weights, tensor by tensor, by values.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "lib/format/weights/weight_set.h"

namespace scaletrain::format {

enum class WeightDifference : std::uint8_t { kNone, kValues, kShape, kOnlyInFirst, kOnlyInSecond };

struct TensorDiff {
  std::string name;
  WeightDifference difference = WeightDifference::kNone;
  // Dtype and shape in the first and the second set; "" and {} if the tensor is absent there.
  std::array<std::string, 2> dtypes;
  std::array<std::vector<std::int64_t>, 2> shapes;
  std::int64_t elements = 0;   // number in one tensor, if both have its shape
  std::int64_t differing = 0;  // elements of other values; NaN equals NaN
  double largest = 0;          // maximum of |a - b|; infinite where only one is NaN or infinite
  double relative = 0;         // ||a - b|| / ||a||, in doubles; infinite where ||a|| is 0
};

// Every tensor of either set, by name. Dtypes may differ: values are compared as doubles. Dtypes
// that cannot be read as doubles (float8, complex) are compared by bytes, and `largest` and
// `relative` are infinite if those differ. Uses a few megabytes of memory at most.
std::vector<TensorDiff> diff_weights(const WeightSet& first, const WeightSet& second);

}  // namespace scaletrain::format
