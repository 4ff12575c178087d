// Silent saturation: a warning when the loss no longer changes or the gradients have vanished.
#pragma once

#include <cstdint>
#include <deque>
#include <string>

namespace scaletrain::train {

class Saturation {
 public:
  // `steps` without a change are saturation; 0: nothing is looked for.
  explicit Saturation(std::int64_t steps) : steps_(steps) {}

  // Counts a step; returns the warning, once for each of its three causes, otherwise "": the loss
  // or the gradient norm is the same to 1e-6 over the last `steps` steps, or the gradient norm has
  // been below 1e-3 of its median over the first `steps` steps, and the loss has not fallen below a
  // tenth of its own. Values that are not finite are not counted.
  std::string step(std::int64_t step, double loss, double grad_norm);

 private:
  std::int64_t steps_;
  std::deque<double> losses_, norms_;        // the newest `steps`
  double first_loss_ = 0, first_norm_ = -1;  // medians of the first `steps`; -1: not known
  bool has_loss_ = false, has_norm_ = false, has_vanished_ = false;  // warned
};

// Returns the number of steps of a run of `total_steps` for the key `saturation`: 0 means 1 % of
// the run, at least 20.
std::int64_t saturation_steps(std::int64_t asked, std::int64_t total_steps);

}  // namespace scaletrain::train
