// Base of optimizers on ATen's foreach kernels: parameter lists, weight decay, the step count, and
// skipping a step whose gradients are not finite.
#pragma once

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/scalar_tensor.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "lib/optim/optimizer.h"
#include "lib/optim/parameter_group.h"

namespace scaletrain::optim {

// Scalars of one step: 0-dim doubles on the parameters' device, since only the device knows if the
// step is skipped.
struct StepNumbers {
  at::Tensor taken;  // 1; 0 if the step is skipped
  at::Tensor lr;     // 0 if the step is skipped
  at::Tensor step;   // number of this step, from 1

  // Returns the factor by which an EMA keeps `share` of its running value; 1 in a skipped step, so
  // that the value stays.
  at::Tensor keep(double share) const { return keep(at::scalar_tensor(share, lr.options())); }
  at::Tensor keep(const at::Tensor& share) const { return 1 - (1 - share) * taken; }
  // Returns 1 - share^step, the bias correction of an average that started at 0 (Kingma and Ba,
  // Adam, 2015, section 3).
  at::Tensor correction(double share) const {
    return 1 - at::pow(at::scalar_tensor(share, lr.options()), step);
  }
};

// A parameter group in one step: flat tensors, in the same order in each list.
struct GroupLists {
  const std::vector<at::Tensor>& parameters;
  // With L2 decay if the optimizer uses it; zeros if the step is skipped. Elements may be replaced,
  // but not changed in place.
  std::vector<at::Tensor> gradients;
  std::vector<std::vector<at::Tensor>> states;  // one list for each kind
  double weight_decay;
};

class ForeachOptimizer : public Optimizer {
 public:
  using Optimizer::step;
  void step(double lr, const std::optional<at::Tensor>& found_inf) final;
  void set_weight_decay(double weight_decay) final;
  units::Shards state() override;

 protected:
  // kL2: adds decay * p to the gradient. kDecoupled: multiplies the parameter by 1 - lr * decay
  // before the update. kOwn: the optimizer applies decay itself.
  enum class Decay { kL2, kDecoupled, kOwn };
  struct Kind {
    const char* name;    // "exp_avg"
    double initial = 0;  // initial value of each element
  };

  ForeachOptimizer(const recipe::Optimizer& config, const std::vector<NamedParameter>& parameters,
                   Decay decay, std::vector<Kind> kinds);

  // Updates the group's parameters and state. In a skipped step gradients and `lr` are zero and
  // keep() is 1, so that running averages and parameters stay unchanged.
  virtual void update(const StepNumbers& numbers, GroupLists& group) = 0;

  // Called before the groups of a step.
  virtual void begin(const StepNumbers& /*numbers*/) {}

  // Adds a scalar state of the optimizer, a 0-dim double.
  at::Tensor add_number(const std::string& name, double initial);

 private:
  Decay decay_;
  std::vector<Kind> kinds_;
  std::vector<ParameterGroup> groups_;
  std::vector<std::vector<GroupState>> states_;  // indexed by group, then kind
  at::TensorOptions number_options_;
  std::map<std::string, at::Tensor> numbers_;
  at::Tensor steps_;  // number of steps taken
};

// list[i] *= factor, a 0-dim tensor on their device.
void multiply(const std::vector<at::Tensor>& list, const at::Tensor& factor);

// Updates average = share * average + (1 - share) * value; in a skipped step, where `values` must
// be zeros, it stays unchanged.
void move_average(const StepNumbers& numbers, const std::vector<at::Tensor>& averages, double share,
                  const std::vector<at::Tensor>& values);
// Updates running averages of value^2 in the same way.
void move_squared_average(const StepNumbers& numbers, const std::vector<at::Tensor>& averages,
                          double share, const std::vector<at::Tensor>& values);

// Returns parameter_norm / change_norm if both are above zero, else 1: a 0-dim tensor.
at::Tensor trust_ratio(const at::Tensor& parameter_norm, const at::Tensor& change_norm,
                       const at::Tensor& ratio);

// Returns sqrt(squares / correction) + eps as new tensors.
std::vector<at::Tensor> denominators(const std::vector<at::Tensor>& squares,
                                     const at::Tensor& correction, double eps);

}  // namespace scaletrain::optim
