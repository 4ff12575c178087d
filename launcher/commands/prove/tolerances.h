// Tolerances of `scaletrain prove`, as relative differences of a loss. docs/guide/prove.md has the
// derivation of each.
#pragma once

#include <string>

namespace scaletrain::launcher {

// Runs with equal operations in equal order have equal bits.
inline constexpr double kSameBits = 0;

// Runs that add the same numbers in another order.
struct SumOrder {
  std::string precision;  // that shows other differences than rounding
  double tolerance = 0;
};

// Returns the precision and the tolerance for a recipe of `precision`. Lower ones than fp32 are
// compared in fp32. BatchNorm multiplies rounding in each step: such models are compared in fp64.
SumOrder sum_order(const std::string& precision, bool has_batch_norm);

// Returns the tolerance for gradients that this method of /compress has rounded.
double compression_tolerance(const std::string& method);

}  // namespace scaletrain::launcher
