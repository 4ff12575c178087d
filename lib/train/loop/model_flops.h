// FLOPs of the model in a training step, summed over the ranks, and the speed and MFU that follow.
//
// One step of each size is counted from the operations that run (lib/units/flop_counter.h), which
// costs 1 to 3 us for each of them; other steps of that size have as many. The first step of a
// process is not the one, because it may choose kernels.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>

#include "lib/core/plan/batch_sizes.h"
#include "lib/observe/model_speed.h"
#include "lib/train/rules/outcomes.h"
#include "lib/train/run/run.h"
#include "lib/units/flop_counter.h"

namespace scaletrain::train {

class ModelFlops {
 public:
  explicit ModelFlops(const Run& run);

  // Call before step `step` (from 0) is queued.
  void begin(std::int64_t step);
  // Call when the step has its gradients, before the update. Collective if the step was counted.
  void end();

  // Adds a step whose result is known and that took `seconds`. Steps that are not counted yet are
  // left out.
  void add(std::int64_t step, double seconds);
  // Speed of the steps since the previous call; nullopt: none was counted.
  std::optional<observe::ModelSpeed> take_window();
  // Speed of all steps of this process.
  std::optional<observe::ModelSpeed> total() const { return speed_of(total_); }

  const observe::DevicePeak& peak() const { return peak_; }

 private:
  // Samples of the global batch, and the image size: what the FLOPs of a step depend on.
  using Size = std::pair<std::int64_t, std::int64_t>;
  struct StepFlops {
    double model, recomputed;
  };
  struct Window {
    double flops, seconds;
    StepFlops last;  // of the last step
  };

  Size size_of(std::int64_t step) const;
  std::optional<observe::ModelSpeed> speed_of(const Window& window) const;

  const Run& run_;
  const core::BatchSizes sizes_;
  const observe::DevicePeak peak_;
  bool is_first_ = true;
  Size size_;                                  // of the current step
  std::int64_t counted_ = 0;                   // the newest step that was counted, from 0
  std::optional<units::FlopCounter> counter_;  // of the current step; nullopt: it is not counted
  std::map<Size, std::optional<StepFlops>> known_;  // nullopt: not read yet
  Outcomes<Size> sums_;
  Window window_{}, total_{};
};

}  // namespace scaletrain::train
