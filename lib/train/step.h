// One optimizer step: micro-batches forward and backward, gradients averaged, one update.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "lib/core/signals.h"
#include "lib/recipe/recipe.h"
#include "lib/train/fault.h"
#include "lib/train/parts.h"

namespace scaletrain::train {

struct StepResult {
  double loss = 0;       // mean over the global batch
  double grad_norm = 0;  // before clipping
  bool finite = true;    // false: the step was left out, on all ranks
  core::StopReason stop = core::StopReason::kNone;
  std::uint64_t digest = 0;  // of the global batch
  double trained_s = 0;      // rank 0's clock at the step's beginning
  std::int64_t skipped = 0;  // bad samples of all ranks
  // This rank's alone.
  double data_s = 0;  // wait for data
  data::StageTimes stages;
  std::vector<data::BadSample> bad_samples;
};

class StepRunner {
 public:
  StepRunner(Parts& parts, const recipe::Recipe& recipe);

  // Step number `step` (from 0) at learning rate `lr`; `trained_s` is this rank's training time.
  // All fields of the result but this rank's own are the same on all ranks.
  StepResult run(std::int64_t step, double lr, double trained_s);

 private:
  // Forward of one micro-batch, of nothing but NaN where the fault asks for it; returns its summed
  // loss.
  at::Tensor forward(std::int64_t step, std::int64_t micro_step, const data::ImageBatch& images,
                     bool make_nan);
  void backward(const at::Tensor& root);
  // Clips and updates where everything is finite; returns whether it was.
  bool update(double lr, double& norm, bool finite);

  Parts& parts_;
  std::uint64_t seed_;
  std::optional<double> max_norm_;
  std::optional<Fault> fault_;
  std::vector<at::Tensor> statistics_, kept_;  // running ones of the model; from before the step
};

}  // namespace scaletrain::train
