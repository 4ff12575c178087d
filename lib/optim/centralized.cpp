// Gradients whose mean is 0 for each output of a layer (Yong et al., Gradient Centralization, 2020,
// equation 1), in front of any optimizer.
#include <ATen/core/grad_mode.h>
#include <ATen/ops/mean.h>

#include <numeric>
#include <utility>

#include "lib/optim/optimizer.h"
#include "lib/optim/parameter_group.h"

namespace scaletrain::optim {
namespace {

class Centralized : public Optimizer {
 public:
  Centralized(std::unique_ptr<Optimizer> inner, std::vector<NamedParameter> parameters)
      : inner_(std::move(inner)), parameters_(std::move(parameters)) {}

  using Optimizer::step;
  void step(double lr, const std::optional<at::Tensor>& found_inf) override {
    const at::NoGradGuard no_grad;
    for (const NamedParameter& parameter : parameters_) {
      const at::Tensor gradient = parameter.tensor.grad();
      if (!gradient.defined() || gradient.dim() < 2) continue;
      std::vector<std::int64_t> inputs(static_cast<std::size_t>(gradient.dim()) - 1);
      std::iota(inputs.begin(), inputs.end(), 1);
      gradient.sub_(at::mean(gradient, inputs, /*keepdim=*/true));
    }
    inner_->step(lr, found_inf);
  }

  void set_weight_decay(double weight_decay) override { inner_->set_weight_decay(weight_decay); }
  units::Shards state() override { return inner_->state(); }
  void resume_at(std::int64_t step) override { inner_->resume_at(step); }
  std::map<std::string, at::Tensor> evaluation_weights() override {
    return inner_->evaluation_weights();
  }
  bool has_evaluation_weights() const override { return inner_->has_evaluation_weights(); }

 private:
  std::unique_ptr<Optimizer> inner_;
  std::vector<NamedParameter> parameters_;
};

}  // namespace

std::unique_ptr<Optimizer> with_centralized_gradients(std::unique_ptr<Optimizer> inner,
                                                      std::vector<NamedParameter> parameters) {
  require_whole("/optimizer/centralize_gradients", parameters);
  return std::make_unique<Centralized>(std::move(inner), std::move(parameters));
}

}  // namespace scaletrain::optim
