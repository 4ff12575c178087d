#include "lib/parallel/gradient_hook.h"

#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <memory>
#include <utility>

namespace scaletrain::parallel {
namespace {

class Arrival : public torch::autograd::PostAccumulateGradHook {
 public:
  explicit Arrival(std::function<void(const at::Tensor&)> arrived) : arrived_(std::move(arrived)) {}

  void operator()(const torch::autograd::Variable& parameter) override { arrived_(parameter); }

 private:
  std::function<void(const at::Tensor&)> arrived_;
};

}  // namespace

void on_gradient(const at::Tensor& parameter, std::function<void(const at::Tensor&)> arrived) {
  torch::autograd::impl::set_post_acc_grad_hooks(parameter,
                                                 std::make_unique<Arrival>(std::move(arrived)));
}

}  // namespace scaletrain::parallel
