// Anomalous steps: loss or gradients that are not finite, or that spike above a running bound.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "lib/recipe/sections/section.h"

namespace scaletrain::recipe {

// The bound is computed by lib/train/rules/spike_bounds.h.
struct Anomaly {
  std::string policy = "skip";  // skip, clip, rollback, reduce_lr, stop
  double spike = 6;             // robust standard deviations above the median; the bound
  std::int64_t window = 100;    // steps before it that the bound is computed from
  std::int64_t max = 10;        // number of anomalous steps among `window` that is tolerated
  double factor = 0.5;          // reduce_lr: factor of the learning rate for each anomalous step
  std::int64_t saturation = 0;  // steps without a change before a warning; 0: 1 % of the run's

  // True if the result of a step must be known before the next step begins.
  bool reads_at_once() const { return policy == "rollback"; }
};

TypePtr describe(std::optional<Anomaly>& value);

}  // namespace scaletrain::recipe
