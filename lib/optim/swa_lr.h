// The learning rate while weights are averaged, as a pure function of the step.
#pragma once

#include <cstdint>

namespace scaletrain::optim {

struct SwaLr {
  double lr = 0;            // final learning rate
  std::int64_t start = 0;   // steps before it leaves the schedule's
  std::int64_t anneal = 0;  // steps that it takes
  bool is_linear = false;   // in a straight line, otherwise half a cosine
};

// Learning rate of step `step` (from 0), if the schedule was at `from` at the start. It is SWALR of
// torch.optim.swa_utils, stepped with each of ours; `from` itself before the start.
double swa_lr(const SwaLr& plan, double from, std::int64_t step);

}  // namespace scaletrain::optim
