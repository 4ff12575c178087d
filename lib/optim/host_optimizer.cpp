#include <ATen/ops/empty_like.h>
#include <c10/core/Event.h>
#include <c10/core/GradMode.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <utility>

#include "lib/optim/optimizer.h"
#include "lib/optim/parameter_group.h"

namespace scaletrain::optim {
namespace {

// In the layout of `tensor`; pinned where that lies on a device, so that copies need no detour.
at::Tensor twin_of(const at::Tensor& tensor) {
  const bool pinned = !tensor.device().is_cpu();
  return at::empty_like(tensor.detach(), tensor.options().device(at::kCPU).pinned_memory(pinned));
}

class HostOptimizer : public Optimizer {
 public:
  HostOptimizer(const MakeOptimizer& make, std::vector<NamedParameter> parameters)
      : device_(device_of(parameters)), parameters_(std::move(parameters)), twins_(parameters_) {
    for (NamedParameter& twin : twins_) twin.tensor = twin_of(twin.tensor);
    inner_ = make(twins_);
  }

  using Optimizer::step;
  void step(double lr, const std::optional<at::Tensor>& found_inf) override {
    const at::NoGradGuard no_grad;
    take_weights();
    for (std::size_t i = 0; i < twins_.size(); ++i) {
      const at::Tensor gradient = parameters_[i].tensor.grad();
      at::Tensor& copy = twins_[i].tensor.mutable_grad();
      if (!gradient.defined()) {
        copy.reset();
        continue;
      }
      if (!copy.defined() || copy.strides() != gradient.strides()) copy = twin_of(gradient);
      copy.copy_(gradient, /*non_blocking=*/true);
    }
    std::optional<at::Tensor> left_out;
    if (found_inf) {
      left_out = twin_of(*found_inf);
      left_out->copy_(*found_inf, /*non_blocking=*/true);
    }
    settle();
    inner_->step(lr, left_out);
    copy_weights(twins_, parameters_);
  }

  void set_weight_decay(double weight_decay) override { inner_->set_weight_decay(weight_decay); }

  // What is the parameters' own in it is those of the model, which are filled from a checkpoint.
  std::map<std::string, at::Tensor> state() override {
    std::map<std::string, at::Tensor> named = inner_->state();
    for (auto& [name, tensor] : named) {
      for (std::size_t i = 0; i < twins_.size(); ++i) {
        if (tensor.is_alias_of(twins_[i].tensor)) tensor = parameters_[i].tensor.detach();
      }
    }
    return named;
  }

  void resume_at(std::int64_t step) override { inner_->resume_at(step); }

  std::map<std::string, at::Tensor> evaluation_weights() override {
    take_weights();
    return inner_->evaluation_weights();
  }

 private:
  static void copy_weights(const std::vector<NamedParameter>& from,
                           const std::vector<NamedParameter>& to) {
    const at::NoGradGuard no_grad;
    for (std::size_t i = 0; i < from.size(); ++i) {
      to[i].tensor.detach().copy_(from[i].tensor.detach(), /*non_blocking=*/true);
    }
  }

  // Once: from then on the weights are changed here alone.
  void take_weights() {
    if (std::exchange(has_weights_, true)) return;
    copy_weights(parameters_, twins_);
    settle();
  }

  // Waits until all copies from the device have arrived.
  void settle() const {
    if (device_.is_cpu()) return;
    c10::Event copied(device_.type());
    copied.record(c10::impl::VirtualGuardImpl(device_.type()).getStream(device_));
    copied.synchronize();
  }

  at::Device device_;
  std::vector<NamedParameter> parameters_, twins_;  // of the model, and in the host's memory
  std::unique_ptr<Optimizer> inner_;
  bool has_weights_ = false;
};

}  // namespace

std::unique_ptr<Optimizer> make_host_optimizer(const recipe::Optimizer& config,
                                               const std::vector<NamedParameter>& parameters) {
  return make_host_optimizer(
      [&config](std::vector<NamedParameter> twins) {
        return make_optimizer(config, std::move(twins));
      },
      parameters);
}

std::unique_ptr<Optimizer> make_host_optimizer(const MakeOptimizer& make,
                                               const std::vector<NamedParameter>& parameters) {
  return std::make_unique<HostOptimizer>(make, parameters);
}

}  // namespace scaletrain::optim
