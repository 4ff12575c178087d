#include "lib/nn/layers/linear.h"

#include <ATen/ATen.h>

#include <utility>

#include "lib/nn/layers/dense.h"
#include "lib/nn/layers/initialise.h"

namespace scaletrain::nn {

Linear::Linear(const Options& options) : options_(options) {
  const auto [in, out, bias, inputs_first] = options;
  weight_ =
      register_parameter("weight", inputs_first ? at::empty({in, out}) : at::empty({out, in}));
  if (bias) bias_ = register_parameter("bias", at::empty({out}));
}

at::Tensor Linear::outputs_last() const { return options_.inputs_first ? weight_.t() : weight_; }

void Linear::cut_by(units::LayerCut cut) {
  const at::Tensor weight = outputs_last();
  options_.out = weight.size(0);
  options_.in = weight.size(1);
  after_ = std::move(cut.after);
}

// Product over a part of the inputs (row-parallel), summed over the ranks.
at::Tensor Linear::summed(const at::Tensor& input) const {
  const at::Tensor weight = outputs_last();
  const at::Tensor sum = after_(product_ ? product_(input, weight, {}) : dense(input, weight));
  return bias_.defined() ? sum + bias_.to(sum.scalar_type()) : sum;
}

at::Tensor Linear::forward(const at::Tensor& input) const {
  if (after_) return summed(input);
  const at::Tensor weight = outputs_last();
  return product_ ? product_(input, weight, bias_) : dense(input, weight, bias_);
}

at::Tensor Linear::forward_relu(const at::Tensor& input) const {
  if (after_) return summed(input).relu_();
  const at::Tensor weight = outputs_last();
  return product_ ? product_(input, weight, bias_).relu_() : dense_relu(input, weight, bias_);
}

void Linear::initialise(const std::string& /*name*/, const at::Tensor& logical,
                        at::Generator generator) const {
  initialise_by_inputs(logical, options_.in, std::move(generator));
}

}  // namespace scaletrain::nn
