// AdamW with 8-bit optimizer state (Dettmers et al., 8-bit Optimizers via Block-wise Quantization,
// 2022): each step computes in fp32 from averages that were quantized after the previous step.
#include <ATen/TensorOperators.h>
#include <ATen/ops/pow.h>

#include <array>
#include <cmath>
#include <utility>

#include "lib/optim/coded_average.h"
#include "lib/optim/parameter_group.h"

namespace scaletrain::optim {
namespace {

using CodedMoments = std::array<CodedAverage, 2>;  // EMA of the gradient, EMA of its square

class AdamW8bit : public TensorOptimizer {
 public:
  AdamW8bit(const recipe::Optimizer& config, const std::vector<NamedParameter>& parameters,
            const CodedMoments& moments)
      : TensorOptimizer(config, parameters,
                        [&](const NamedParameter& parameter) {
                          std::vector<TensorState> states;
                          for (const CodedAverage& one : moments) one.add_states(parameter, states);
                          return states;
                        }),
        beta1_(config.number("beta1")),
        beta2_(config.number("beta2")),
        eps_(config.number("eps")),
        moments_(moments) {}

 private:
  void update(const TensorStep& one) override {
    const at::Tensor average = moments_[0].load(one), squares = moments_[1].load(one);
    average.mul_(beta1_).add_(one.gradient, 1 - beta1_);
    squares.mul_(beta2_).addcmul_(one.gradient, one.gradient, 1 - beta2_);
    const at::Tensor denominator =
        (squares / correction(beta2_, one).to(squares.scalar_type())).sqrt_().add_(eps_);
    one.parameter.mul_(1 - one.lr * one.weight_decay);
    one.parameter.sub_(
        (average / denominator).mul_((one.lr / correction(beta1_, one)).to(average.scalar_type())));
    moments_[0].store(average, one);
    moments_[1].store(squares, one);
  }

  bool update_at_once(const TensorStep& one) override {
    if (!moments_[0].has_blocks(one)) return false;
    const double number = *one.number.const_data_ptr<double>();
    const AdamWNumbers numbers{
        .beta1 = static_cast<float>(beta1_),
        .beta2 = static_cast<float>(beta2_),
        .eps = static_cast<float>(eps_),
        .keep = static_cast<float>(1 - one.lr * one.weight_decay),
        .rate = static_cast<float>(one.lr / (1 - std::pow(beta1_, number))),
        .correction = static_cast<float>(1 / (1 - std::pow(beta2_, number)))};
    const CodedBlocks average = moments_[0].blocks(one), squares = moments_[1].blocks(one);
    for_each_block(one, [&](const BlockStep& step, std::int64_t at) {
      adamw_block(numbers, step, average.from(at), squares.from(at));
    });
    return true;
  }

  static at::Tensor correction(double share, const TensorStep& one) {
    return 1 - at::pow(share, one.number);
  }

  double beta1_, beta2_, eps_;
  CodedMoments moments_;
};

}  // namespace

std::unique_ptr<Optimizer> make_adamw_8bit(const recipe::Optimizer& config,
                                           std::vector<NamedParameter> parameters) {
  const at::Device device = device_of(parameters);
  const std::int64_t min_size = config.integer("min_8bit_size");
  return std::make_unique<AdamW8bit>(
      config, parameters,
      CodedMoments{CodedAverage("exp_avg", 0, /*has_signs=*/true, min_size, device),
                   CodedAverage("exp_avg_sq", 1, /*has_signs=*/false, min_size, device)});
}

}  // namespace scaletrain::optim
