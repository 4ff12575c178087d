// Averages of the weights over training: EMA and SWA.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lib/units/shard.h"

namespace scaletrain::optim {

struct MeanPlan {
  std::string name = {};  // "ema", "ema:0.999", "swa": lib/format/checkpoint/checkpoint_folder.h
  std::optional<double> decay =
      {};               // decay: share that the average keeps at an update; nullopt: equal weights
  bool warmup = false;  // true: smaller decay at first
  std::int64_t start = 0;  // number of steps before the first averaged weights; 0: `every`
  std::int64_t every = 1;  // steps between updates
  // Maps steps to the unit of `every`; grows by 0 or 1 with each step. {}: counts steps.
  std::function<std::int64_t(std::int64_t steps)> place = {};
};

// mean = decay * mean + (1 - decay) * model for floating-point tensors; other tensors take the
// newest value. The first update copies the model. With a warmup the n-th update after that uses
// min(decay, 1 - (1 + n)^(-2/3)), as timm's ModelEmaV3; without a warmup it is
// torch.optim.swa_utils' get_ema_multi_avg_fn. Without a decay the n-th update keeps n / (n + 1),
// as its get_swa_multi_avg_fn.
class Mean {
 public:
  // Averages `model` (parameters and buffers by name), which must outlive this object. Starts as a
  // copy, in fp32 for shorter floating-point dtypes.
  Mean(MeanPlan plan, const units::Shards& model);

  // Call after step `step` (from 0); updates if an update is due. If `found_inf` (as in
  // Optimizer::step()) is 1, nothing changes. Only queues work on a device; waits for tensors in
  // host memory.
  void update(std::int64_t step, const at::Tensor& found_inf);
  // True if update() does anything after that step.
  bool is_due(std::int64_t step) const;

  const MeanPlan& plan() const { return plan_; }
  // Returns the averages by the model's names, sharded as the model is; copying into them restores
  // them.
  const units::Shards& state() const { return means_; }
  // Resumes after `updates` updates with the values in state().
  void restore(std::int64_t updates);

 private:
  // Returns the model's share in the next update, a 0-dim double.
  at::Tensor share() const;

  MeanPlan plan_;
  units::Shards means_;
  // Floating-point tensors, on the device and in host memory.
  struct Moving {
    std::vector<at::Tensor> model, means;
  };
  std::map<at::DeviceType, Moving> moving_;
  std::vector<std::pair<at::Tensor, at::Tensor>>
      copied_;          // tensors that are copied, not averaged, and their copies
  at::Tensor updates_;  // number of updates: a 0-dim double on the device of the last tensor
};

}  // namespace scaletrain::optim
