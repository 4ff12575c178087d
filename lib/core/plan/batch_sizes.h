// Global batch size of each optimizer step, as a pure function of the step.
//
// Batch size ramp-up works as Megatron-LM's --rampup-batch-size (Brown et al., Language Models are
// Few-Shot Learners, 2020, appendix B): the batch starts with `start` samples and grows by
// `increment` until it has its full size. The ramp takes `samples` training samples, the same
// number for each size. A step has the size that is valid at its first sample.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace scaletrain::core {

struct BatchRamp {
  std::int64_t start = 0, increment = 0;  // samples of the first step; samples added at a time
  std::int64_t samples = 0;               // length of the ramp
  bool operator==(const BatchRamp&) const = default;
};

class BatchSizes {
 public:
  // Consecutive steps with the same batch size.
  struct Stage {
    std::int64_t first_step = 0, first_sample = 0, batch = 0;
  };

  // Returns why `ramp` cannot reach the batch size `global`; "" if it can.
  static const char* why_not(std::int64_t global, const BatchRamp& ramp);

  // `ramp` must be able to reach `global` (why_not).
  explicit BatchSizes(std::int64_t global, const std::optional<BatchRamp>& ramp = std::nullopt);

  const std::vector<Stage>& stages() const { return stages_; }  // in order; the last has no end
  std::int64_t global() const { return stages_.back().batch; }
  std::int64_t of_step(std::int64_t step) const { return stage_of_step(step).batch; }
  // Returns the number of samples that are trained before `step`.
  std::int64_t samples_before(std::int64_t step) const;
  // Returns the step that trains sample number `sample` of the whole training.
  std::int64_t step_of_sample(std::int64_t sample) const;

 private:
  const Stage& stage_of_step(std::int64_t step) const;

  std::vector<Stage> stages_;
};

}  // namespace scaletrain::core
