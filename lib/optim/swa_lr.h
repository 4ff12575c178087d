// Learning rate during stochastic weight averaging (SWA), as a pure function of the step.
#pragma once

#include <cstdint>

namespace scaletrain::optim {

struct SwaLr {
  double lr = 0;            // final learning rate
  std::int64_t start = 0;   // step at which it leaves the schedule
  std::int64_t anneal = 0;  // steps of the transition
  bool is_linear = false;   // linear transition; false: half a cosine
};

// Returns the learning rate of step `step` (from 0), if the schedule was at `from` at the start:
// torch.optim.swa_utils' SWALR, stepped once for each optimizer step; `from` before the start.
double swa_lr(const SwaLr& plan, double from, std::int64_t step);

}  // namespace scaletrain::optim
