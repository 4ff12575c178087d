// A mean of a model's tensors over the steps of training, which moves with the weights.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace scaletrain::optim {

struct MeanPlan {
  std::string name = {};  // "ema", "ema:0.999", "swa": lib/format/checkpoint/checkpoint_folder.h
  std::optional<double> decay =
      {};                  // share of itself that it keeps at an update; nullopt: equal shares
  bool warmup = false;     // it keeps less at first
  std::int64_t start = 0;  // the first weights that count are those after so many steps, or
  std::int64_t every = 1;  // after so many where that is 0; so many steps from then to the next
  // Maps steps to the unit in which `every` counts: it rises by 1 or 0 with each step.
  // {}: the steps themselves.
  std::function<std::int64_t(std::int64_t steps)> place = {};
};

// mean = decay * mean + (1 - decay) * model, of floating tensors; of others the newest value. The
// first update takes the model as it is. With a warmup the n-th update after that keeps
// min(decay, 1 - (1 + n)^(-2/3)): timm's ModelEmaV3, and without one torch.optim.swa_utils'
// get_ema_multi_avg_fn. Without a decay the n-th keeps n / (n + 1): its get_swa_multi_avg_fn.
class Mean {
 public:
  // Averages `model`, parameters and buffers by name, which must outlive it. Begins as a copy, in
  // fp32 for shorter floating-point dtypes.
  Mean(MeanPlan plan, const std::map<std::string, at::Tensor>& model);

  // After step number `step` (from 0), where one is due. `found_inf` as Optimizer::step takes it:
  // nothing changes where it is 1. Only queues work, but for tensors in the memory of a device's
  // host, for which it waits.
  void update(std::int64_t step, const at::Tensor& found_inf);
  // True if update() does anything after that step.
  bool is_due(std::int64_t step) const;

  const MeanPlan& plan() const { return plan_; }
  // The mean by the model's names; copying into it restores it.
  const std::map<std::string, at::Tensor>& tensors() const { return means_; }
  // Goes on after so many updates, from what tensors() holds.
  void restore(std::int64_t updates);

 private:
  // Returns the model's share of the mean in the next update, a 0-dim double.
  at::Tensor share() const;

  MeanPlan plan_;
  std::map<std::string, at::Tensor> model_, means_;
  // Floating ones, of the device and of its host's memory.
  struct Moving {
    std::vector<at::Tensor> model, means;
  };
  std::map<at::DeviceType, Moving> moving_;
  at::Tensor updates_;  // so far: a 0-dim double, on the last one's device
};

}  // namespace scaletrain::optim
