// A running mean of a model's tensors, which moves with every update of the weights.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "lib/recipe/sections/ema.h"

namespace scaletrain::optim {

// mean = decay * mean + (1 - decay) * model, of floating tensors; of others the newest value. The
// first update takes the model as it is. With a warmup the n-th update after that keeps
// min(decay, 1 - (1 + n)^(-2/3)): timm's ModelEmaV3, and without one torch.optim.swa_utils'
// get_ema_multi_avg_fn.
class Ema {
 public:
  // Of `model`, parameters and buffers by name, which outlive it; begins as a copy, in fp32 of what
  // is floating and shorter.
  Ema(const recipe::Ema& config, const std::map<std::string, at::Tensor>& model);

  // After step number `step` (from 0), where that is the end of `every` steps. `found_inf` as
  // Optimizer::step takes it: nothing changes where it is 1. Only queues work.
  void update(std::int64_t step, const at::Tensor& found_inf);
  // Whether update() does anything after that step.
  bool is_due(std::int64_t step) const { return (step + 1) % config_.every == 0; }

  // The mean by the model's names; copying into it restores it.
  const std::map<std::string, at::Tensor>& tensors() const { return means_; }
  // Goes on after so many updates, from what tensors() holds.
  void restore(std::int64_t updates);

 private:
  // What the model's share of the mean is in the next update, a 0-dim double.
  at::Tensor share() const;

  recipe::Ema config_;
  std::map<std::string, at::Tensor> model_, means_;
  std::vector<at::Tensor> moving_, moving_means_;  // floating ones
  at::Tensor updates_;                             // so far: a 0-dim double on their device
};

}  // namespace scaletrain::optim
