#include "lib/engine/deferred_weights.h"

#include <ATen/core/ivalue.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <utility>

#include "lib/nn/layers/dense.h"

namespace scaletrain::engine {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// Autograd graph of the layer's product alone; its leaves share the parameters' memory.
struct Product : torch::CustomClassHolder {
  std::shared_ptr<DeferredWeights> owner;
  Tensor weight, bias;  // the parameters; bias may be undefined
  Tensor own_input, own_weight, own_bias, output;

  // Gradients of `leaves`, all of which require one; may be called repeatedly on the same graph.
  variable_list gradients(const Tensor& gradient, const variable_list& leaves) const {
    return torch::autograd::grad({output}, leaves, {gradient}, /*retain_graph=*/true);
  }
};

void add_to_gradient(const Tensor& parameter, const Tensor& gradient) {
  Tensor& sum = parameter.mutable_grad();
  if (sum.defined()) {
    sum.add_(gradient);
  } else {
    sum = gradient.contiguous();
  }
  // Runs the hook as autograd does after its own accumulation.
  const auto& hook = torch::autograd::impl::post_acc_grad_hooks(parameter);
  if (hook) (*hook)(parameter);
}

Tensor own_leaf(const Tensor& tensor) {
  if (!tensor.defined()) return {};
  return tensor.detach().requires_grad_(tensor.requires_grad());
}

class DeferredLinear : public torch::autograd::Function<DeferredLinear> {
 public:
  // Takes weight and bias as arguments so that the output requires a gradient if they do.
  static Tensor forward(AutogradContext* context, const Tensor& /*input*/, const Tensor& /*weight*/,
                        const std::optional<Tensor>& /*bias*/,
                        const c10::intrusive_ptr<Product>& product) {
    context->saved_data["product"] = c10::IValue::make_capsule(product);
    return product->output.detach();
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto product =
        c10::static_intrusive_pointer_cast<Product>(context->saved_data["product"].toCapsule());
    const Tensor gradient = gradients[0];
    variable_list result(4);
    if (product->own_input.requires_grad()) {
      result[0] = product->gradients(gradient, {product->own_input})[0];
    }
    product->owner->take([product, gradient] {
      variable_list parameters, leaves;
      if (product->own_weight.requires_grad()) {
        parameters.push_back(product->weight);
        leaves.push_back(product->own_weight);
      }
      if (product->own_bias.defined() && product->own_bias.requires_grad()) {
        parameters.push_back(product->bias);
        leaves.push_back(product->own_bias);
      }
      const variable_list found = product->gradients(gradient, leaves);
      const at::NoGradGuard no_grad;
      for (std::size_t i = 0; i < leaves.size(); ++i) add_to_gradient(parameters[i], found[i]);
    });
    context->saved_data.clear();
    return result;
  }
};

}  // namespace

void DeferredWeights::Work::run() {
  for (const std::function<void()>& one : std::exchange(kept_, {})) one();
}

DeferredWeights::Scope::Scope(DeferredWeights& owner, Work& work) : owner_(owner) {
  const std::lock_guard lock(owner_.mutex_);
  owner_.work_ = &work;
}

DeferredWeights::Scope::~Scope() {
  const std::lock_guard lock(owner_.mutex_);
  owner_.work_ = nullptr;
}

void DeferredWeights::take(std::function<void()> one) {
  {
    const std::lock_guard lock(mutex_);
    if (work_ != nullptr) return work_->add(std::move(one));
  }
  one();
}

void DeferredWeights::attach(nn::Linear& linear) {
  const bool inputs_first = linear.options().inputs_first;
  const auto named = linear.named_parameters();
  const Tensor* const bias = named.find("bias");
  linear.multiply_by([owner = shared_from_this(), inputs_first, weight = named["weight"],
                      own = bias != nullptr ? *bias : Tensor()](
                         const Tensor& input, const Tensor& outputs_last, const Tensor& added) {
    // Row-parallel layers add their bias after the all-reduce, not here.
    const Tensor used = added.defined() ? own : Tensor();
    const bool trains = weight.requires_grad() || (used.defined() && used.requires_grad());
    if (!trains || !at::GradMode::is_enabled()) return nn::dense(input, outputs_last, added);
    auto product = c10::make_intrusive<Product>();
    product->owner = owner;
    product->weight = weight;
    product->bias = used;
    product->own_input = own_leaf(input);
    product->own_weight = own_leaf(weight);
    product->own_bias = own_leaf(used);
    product->output =
        nn::dense(product->own_input, inputs_first ? product->own_weight.t() : product->own_weight,
                  product->own_bias);
    return DeferredLinear::apply(input, weight, used.defined() ? std::optional(used) : std::nullopt,
                                 product);
  });
}

}  // namespace scaletrain::engine
