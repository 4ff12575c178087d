// Lion with 8-bit optimizer state (Chen et al., Symbolic Discovery of Optimization Algorithms,
// 2023, algorithm 2): its average is quantized after each step.
#include <ATen/TensorOperators.h>

#include "lib/optim/coded_average.h"
#include "lib/optim/parameter_group.h"

namespace scaletrain::optim {
namespace {

class Lion8bit : public TensorOptimizer {
 public:
  Lion8bit(const recipe::Optimizer& config, const std::vector<NamedParameter>& parameters,
           const CodedAverage& average)
      : TensorOptimizer(config, parameters,
                        [&](const NamedParameter& parameter) {
                          std::vector<TensorState> states;
                          average.add_states(parameter, states);
                          return states;
                        }),
        beta1_(config.number("beta1")),
        beta2_(config.number("beta2")),
        average_(average) {}

 private:
  void update(const TensorStep& one) override {
    const at::Tensor average = average_.load(one);
    const at::Tensor direction = (average * beta1_).add_(one.gradient, 1 - beta1_).sign_();
    one.parameter.mul_(1 - one.lr * one.weight_decay).sub_(direction, one.lr);
    average_.store(average.mul_(beta2_).add_(one.gradient, 1 - beta2_), one);
  }

  bool update_at_once(const TensorStep& one) override {
    if (!average_.has_blocks(one)) return false;
    const LionNumbers numbers{.beta1 = static_cast<float>(beta1_),
                              .beta2 = static_cast<float>(beta2_),
                              .keep = static_cast<float>(1 - one.lr * one.weight_decay),
                              .rate = static_cast<float>(one.lr)};
    const CodedBlocks average = average_.blocks(one);
    for_each_block(one, [&](const BlockStep& step, std::int64_t at) {
      lion_block(numbers, step, average.from(at));
    });
    return true;
  }

  double beta1_, beta2_;
  CodedAverage average_;
};

}  // namespace

std::unique_ptr<Optimizer> make_lion_8bit(const recipe::Optimizer& config,
                                          std::vector<NamedParameter> parameters) {
  const at::Device device = device_of(parameters);
  return std::make_unique<Lion8bit>(
      config, parameters,
      CodedAverage("exp_avg", 0, /*has_signs=*/true, config.integer("min_8bit_size"), device));
}

}  // namespace scaletrain::optim
