#include "lib/nn/layers/sync_batch_norm.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/csrc/autograd/saved_variable.h>

#include <functional>
#include <memory>
#include <utility>

#include "lib/units/widened.h"

namespace scaletrain::nn {
namespace {

using at::Tensor;
using SumOverRanks = std::function<void(const Tensor&)>;
using torch::autograd::SavedVariable;
using torch::autograd::variable_list;

// Moments over the samples of all ranks, [channels] in the dtype of the norm's parameters.
struct BatchMoments {
  Tensor mean, variance;  // the variance divides by the count
  Tensor count;           // 0-dim double: values of a channel
};

Tensor per_channel(const Tensor& values) { return values.view({1, -1, 1, 1}); }

// A single all-reduce: each rank contributes its mean and variance as moments about zero, in
// doubles, whose cancellation loses nothing that fp32 could represent.
BatchMoments moments_over_ranks(const Tensor& input, at::ScalarType type,
                                const SumOverRanks& sum_over_ranks) {
  const std::int64_t channels = input.size(1), values = input.numel() / channels;
  auto [variance, mean] =
      at::var_mean(units::widened(input), at::IntArrayRef{0, 2, 3}, false, false);
  mean = mean.to(at::kDouble);
  Tensor sums =
      at::cat({mean, variance.to(at::kDouble) + mean.square(), at::ones_like(mean.narrow(0, 0, 1))})
          .mul_(static_cast<double>(values));
  sum_over_ranks(sums);
  const Tensor count = sums.select(0, 2 * channels);
  const Tensor total_mean = sums.narrow(0, 0, channels) / count;
  const Tensor total_variance =
      (sums.narrow(0, channels, channels) / count - total_mean.square()).clamp_min_(0);
  return {total_mean.to(type), total_variance.to(type), count};
}

// Backward of the norm as a function of three tensors: the derivative of Ioffe and Szegedy,
// section 3, with both sums over the batches of all ranks.
class SyncBatchNormBackward : public torch::autograd::Node {
 public:
  SyncBatchNormBackward(const Tensor& input, const Tensor& weight, BatchMoments moments, double eps,
                        SumOverRanks sum_over_ranks)
      : input_(input, false),
        weight_(weight, false),
        moments_(std::move(moments)),
        eps_(eps),
        sum_over_ranks_(std::move(sum_over_ranks)) {}

  variable_list apply(variable_list&& gradients) override {
    const Tensor input = input_.unpack(), weight = weight_.unpack();
    // With the statistics held fixed: weight / deviation times the gradient, and the sums of the
    // gradient and of its product with the normalised values.
    // A device kernel needs a tensor here.
    const Tensor unsaved = at::empty({0}, moments_.mean.options());
    const auto [fixed, weight_gradient, bias_gradient] = at::native_batch_norm_backward(
        gradients[0].contiguous(input.suggest_memory_format()), input, weight, moments_.mean,
        moments_.variance, unsaved, unsaved, false, eps_, {true, true, true});
    Tensor sums = at::cat({bias_gradient, weight_gradient}).to(at::kDouble);
    sum_over_ranks_(sums);
    sums = (sums / moments_.count).to(weight.scalar_type());
    const std::int64_t channels = weight.numel();
    const Tensor mean_gradient = sums.narrow(0, 0, channels);
    const Tensor mean_product = sums.narrow(0, channels, channels);
    // input_gradient = fixed - weight / deviation * (mean_gradient + normalised * mean_product),
    // which is linear in the input.
    const Tensor inverse = (moments_.variance + eps_).rsqrt();
    const Tensor slope = -weight * inverse.square() * mean_product;
    const Tensor offset = -weight * inverse * mean_gradient - slope * moments_.mean;
    const Tensor input_gradient =
        at::addcmul(fixed + per_channel(offset), input, per_channel(slope)).to(input.scalar_type());
    return {input_gradient, weight_gradient, bias_gradient};
  }

  void release_variables() override {
    input_.reset_data();
    weight_.reset_data();
  }

  std::string name() const override { return "SyncBatchNormBackward"; }

 private:
  SavedVariable input_, weight_;
  BatchMoments moments_;
  double eps_;
  SumOverRanks sum_over_ranks_;
};

}  // namespace

Tensor SyncBatchNorm::forward(const Tensor& input, const units::Context& context) {
  if (!has_ranks(context)) return BatchNorm::forward(input, context);
  const bool differentiates = at::GradMode::is_enabled();
  Tensor output;
  BatchMoments moments;
  {
    const at::NoGradGuard no_grad;
    moments = moments_over_ranks(input.detach(), weight_.scalar_type(), context.sum_over_ranks);
    output = at::batch_norm(input.detach(), weight_, bias_, moments.mean, moments.variance, false,
                            0, options_.eps, at::globalContext().userEnabledCuDNN());
    if (!context.again) {
      batches_.add_(1);
      mean_.lerp_(moments.mean, options_.momentum);
      const Tensor unbiased = moments.variance * (moments.count / (moments.count - 1));
      variance_.lerp_(unbiased.to(variance_.scalar_type()), options_.momentum);
    }
  }
  if (!differentiates) return output;
  const auto node = std::shared_ptr<SyncBatchNormBackward>(
      new SyncBatchNormBackward(input, weight_, moments, options_.eps, context.sum_over_ranks),
      torch::autograd::deleteNode);
  node->set_next_edges(torch::autograd::collect_next_edges(input, weight_, bias_));
  torch::autograd::set_history(output, node);
  return output;
}

Tensor SyncBatchNorm::forward_relu(const Tensor& input, const units::Context& context,
                                   const Tensor& residual) {
  return has_ranks(context) ? ImageNorm::forward_relu(input, context, residual)
                            : BatchNorm::forward_relu(input, context, residual);
}

}  // namespace scaletrain::nn
