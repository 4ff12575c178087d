// Robust running bound of loss and gradient norm, above which a step is a spike.
//
// Values are compared on the scale asinh(x / s), which is the logarithm for values above s and
// linear below. The bound is median + spike * max(1.4826 * MAD, 0.05) on that scale. The scaled
// median absolute deviation (MAD) estimates the standard deviation, and up to half of the values
// may be outliers (Rousseeuw and Croux, Alternatives to the Median Absolute Deviation, 1993). The
// floor of 0.05 makes no spike of a change below 5 % for each unit of `spike`. ZClip (Kumar et al.,
// 2025) clips to mean + z * standard deviation of the gradient norm instead.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "lib/format/checkpoint/train_state.h"

namespace scaletrain::train {

// Bounds of a step; infinite where there is none yet.
struct SpikeBounds {
  double loss = std::numeric_limits<double>::infinity();
  double grad_norm = std::numeric_limits<double>::infinity();
  bool operator==(const SpikeBounds&) const = default;
};

// Returns the bound of `values`, at least one, all finite. `linear_below` is the scale s.
double robust_bound(const std::vector<double>& values, double spike, double linear_below);

// Returns the bounds of step `step` (from 1) from the `window` newest measures before step - 1, or
// none if they are fewer than half of `window`. The step before is left out, since a device's
// result of it is not known when `step` is queued: a resume computes the same bounds.
SpikeBounds spike_bounds(const std::vector<format::StepMeasure>& measures, std::int64_t step,
                         std::int64_t window, double spike);

}  // namespace scaletrain::train
