// How many samples each step of a training has, as a pure function of the step.
//
// A batch may grow (Brown et al., Language Models are Few-Shot Learners, 2020, appendix B) as
// Megatron-LM's --rampup-batch-size says: by `increment` at a time, each size for as many samples,
// up to the whole batch after `samples`. A step has the size that holds where it begins.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace scaletrain::core {

struct BatchRamp {
  std::int64_t start = 0, increment = 0;  // samples of a step, and so many more each time
  std::int64_t samples = 0;               // over which it grows
  bool operator==(const BatchRamp&) const = default;
};

class BatchSizes {
 public:
  // Steps of so many samples, and of the last size on.
  struct Stage {
    std::int64_t first_step = 0, first_sample = 0, batch = 0;
  };

  // Why a batch cannot grow so to `global`; "": it can.
  static const char* why_not(std::int64_t global, const BatchRamp& ramp);

  // A `ramp` can grow to `global`.
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
