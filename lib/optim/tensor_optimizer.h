// Base of optimizers that update parameters one by one, since their update depends on the tensor's
// shape or their state has another shape.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "lib/optim/optimizer.h"

namespace scaletrain::optim {

// One parameter in one step. The tensors have the parameter's shape, except the states.
struct TensorStep {
  const at::Tensor& parameter;  // changed in place
  const at::Tensor& gradient;   // not changed in place; zeros in update() if the step is skipped
  const std::vector<at::Tensor>& states;  // in the order of MakeStates, changed in place
  const at::Tensor& number;               // step count from 1: a 0-dim double on their device
  std::int64_t tried = 0;                 // step count on the host, including skipped steps
  double lr = 0;
  double weight_decay = 0;
  std::int64_t begin = 0;  // NamedParameter's
};

// One state tensor of a parameter.
struct TensorState {
  std::string kind;  // "exp_avg"
  at::Tensor tensor;
  bool is_whole = false;  // elements do not correspond to those of the parameter: never sharded
};

class TensorOptimizer : public Optimizer {
 public:
  using Optimizer::step;
  void step(double lr, const std::optional<at::Tensor>& found_inf) final;
  void set_weight_decay(double weight_decay) final;
  units::Shards state() final;
  void resume_at(std::int64_t step) final { tried_ = step; }

 protected:
  // Makes a parameter's state before the first step.
  using MakeStates = std::function<std::vector<TensorState>(const NamedParameter& parameter)>;

  TensorOptimizer(const recipe::Optimizer& config, const std::vector<NamedParameter>& parameters,
                  const MakeStates& make_states);

  // Updates a parameter and its states; if the step is skipped on a device, the old values are
  // restored afterwards.
  virtual void update(const TensorStep& one) = 0;

  // Updates the parameter with a fused kernel; returns false if there is none for this parameter.
  virtual bool update_at_once(const TensorStep& /*one*/) { return false; }

  // True if the host can read `found_inf` without a wait: then a skipped step does nothing and
  // nothing has to be put back. (Tests of device behaviour return false.)
  virtual bool can_look_at(const at::Tensor& found_inf) const { return found_inf.is_cpu(); }

 private:
  void take_step(double lr, const std::optional<at::Tensor>& found_inf);

  struct Entry {
    NamedParameter parameter;
    std::vector<at::Tensor> states;
    units::Shards named;  // the states by their names in state()
    double weight_decay;
    bool follows;  // set_weight_decay() changes its weight decay
  };
  std::vector<Entry> entries_;
  at::Tensor steps_;  // taken so far, a 0-dim double on the parameters' device
  std::int64_t tried_ = 0;
};

}  // namespace scaletrain::optim
