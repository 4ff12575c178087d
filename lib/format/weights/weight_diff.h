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
  std::int64_t elements = 0;   // elements of the tensor, if both have the same shape
  std::int64_t differing = 0;  // elements whose values differ; NaN equals NaN
  double largest = 0;          // maximum of |a - b|; infinite if only one is NaN or infinite
  double relative = 0;         // ||a - b|| / ||a|| in double precision; infinite if ||a|| is 0
};

// Compares every tensor of either set, by name. Dtypes may differ: values are compared as doubles.
// Dtypes that cannot be read as doubles (float8, complex) are compared by bytes, and `largest` and
// `relative` are infinite if they differ. Uses at most a few megabytes of memory.
std::vector<TensorDiff> diff_weights(const WeightSet& first, const WeightSet& second);

}  // namespace scaletrain::format
