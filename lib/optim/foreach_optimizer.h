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

// The numbers of one step: 0-dim doubles on the parameters' device, since only there it is known
// whether the step is left out.
struct StepNumbers {
  at::Tensor taken;  // 1; 0 where the step is left out
  at::Tensor lr;     // 0 where it is left out
  at::Tensor step;   // the number of this step, from 1

  // Returns the factor by which an EMA keeps `share` of its running value; 1 in a skipped step, so
  // that the value stays.
  at::Tensor keep(double share) const { return keep(at::scalar_tensor(share, lr.options())); }
  at::Tensor keep(const at::Tensor& share) const { return 1 - (1 - share) * taken; }
  // 1 - share^step, which an average that began at 0 is divided by (Kingma and Ba, Adam, 2015,
  // section 3).
  at::Tensor correction(double share) const {
    return 1 - at::pow(at::scalar_tensor(share, lr.options()), step);
  }
};

// A group in one step: flat tensors, in the same order in each list.
struct GroupLists {
  const std::vector<at::Tensor>& parameters;
  // With L2 decay where the optimizer has that; zeros where the step is left out. May be changed,
  // but not in place.
  std::vector<at::Tensor> gradients;
  std::vector<std::vector<at::Tensor>> states;  // one list for each kind
  double weight_decay;
};

class ForeachOptimizer : public Optimizer {
 public:
  using Optimizer::step;
  void step(double lr, const std::optional<at::Tensor>& found_inf) final;
  void set_weight_decay(double weight_decay) final;
  std::map<std::string, at::Tensor> state() override;

 protected:
  // decay * p is added to the gradient (L2), the parameter is multiplied with 1 - lr * decay before
  // the update (decoupled), or the optimizer's own.
  enum class Decay { kL2, kDecoupled, kOwn };
  struct Kind {
    const char* name;    // "exp_avg"
    double initial = 0;  // initial value of each element
  };

  ForeachOptimizer(const recipe::Optimizer& config, const std::vector<NamedParameter>& parameters,
                   Decay decay, std::vector<Kind> kinds);

  // Changes the group's parameters and states. Where the step is left out, gradients and `lr` are
  // zero: a state that is multiplied with keep() and has a multiple of a gradient added to it, and
  // a parameter from which a finite multiple of lr is taken, stay as they are.
  virtual void update(const StepNumbers& numbers, GroupLists& group) = 0;

  // Before the groups of a step.
  virtual void begin(const StepNumbers& /*numbers*/) {}

  // A state of the whole optimizer, a 0-dim double.
  at::Tensor add_number(const std::string& name, double initial);

 private:
  Decay decay_;
  std::vector<Kind> kinds_;
  std::vector<ParameterGroup> groups_;
  std::vector<std::vector<GroupState>> states_;  // indexed by group, then kind
  at::TensorOptions number_options_;
  std::map<std::string, at::Tensor> numbers_;
  at::Tensor steps_;  // taken so far
};

// list[i] *= factor, a 0-dim tensor on their device.
void multiply(const std::vector<at::Tensor>& list, const at::Tensor& factor);

// average = share * average + (1 - share) * value; as it was where the step is left out, given that
// `values` are zeros there.
void move_average(const StepNumbers& numbers, const std::vector<at::Tensor>& averages, double share,
                  const std::vector<at::Tensor>& values);
// Moves running averages of value^2 likewise.
void move_squared_average(const StepNumbers& numbers, const std::vector<at::Tensor>& averages,
                          double share, const std::vector<at::Tensor>& values);

// `ratio` where both norms are above zero, else 1: a 0-dim tensor.
at::Tensor trust_ratio(const at::Tensor& parameter_norm, const at::Tensor& change_norm,
                       const at::Tensor& ratio);

// sqrt(squares / correction) + eps, as new tensors.
std::vector<at::Tensor> denominators(const std::vector<at::Tensor>& squares,
                                     const at::Tensor& correction, double eps);

}  // namespace scaletrain::optim
