#include "lib/optim/tensor_optimizer.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include <cmath>
#include <vector>

namespace scaletrain::optim {
namespace {

// Adds up gradients, takes the sum from the parameter, and keeps what it is given.
class Summing : public TensorOptimizer {
 public:
  Summing(const std::vector<NamedParameter>& parameters, bool can_look)
      : TensorOptimizer({}, parameters,
                        [](const NamedParameter& parameter) -> std::vector<TensorState> {
                          return {{"sum", at::zeros_like(parameter.tensor.detach())}};
                        }),
        can_look_(can_look) {}

  std::vector<at::Tensor> seen;

 private:
  void update(const TensorStep& one) override {
    seen.push_back(one.gradient.clone());
    one.states[0].add_(one.gradient + 1);
    one.parameter.sub_(one.states[0], one.lr);
  }
  bool can_look_at(const at::Tensor& /*found_inf*/) const override { return can_look_; }

  bool can_look_;
};

// Three steps of which the second is left out.
struct Steps {
  at::Tensor weight = at::tensor({1.0F, -2.0F}).requires_grad_();
  Summing optimizer;

  explicit Steps(bool can_look) : optimizer({{.name = "weight", .tensor = weight}}, can_look) {
    for (const float first : {0.5F, std::nanf(""), 0.25F}) {
      weight.mutable_grad() = at::tensor({first, 3.0F});
      optimizer.step(0.1, at::full({}, std::isnan(first) ? 1.0F : 0.0F));
    }
  }
};

}  // namespace

TEST_CASE("a skipped update on a device gets zeros instead of gradients that are not finite") {
  const Steps steps(/*can_look=*/false);
  REQUIRE(steps.optimizer.seen.size() == 3);
  CHECK((at::equal(steps.optimizer.seen[1], at::zeros({2}))));
  CHECK((at::equal(steps.optimizer.seen[2], at::tensor({0.25F, 3.0F}))));
}

TEST_CASE("where the host can look, a step that is left out is none, with the same bits") {
  Steps on_device(/*can_look=*/false), on_host(/*can_look=*/true);
  CHECK(on_host.optimizer.seen.size() == 2);
  CHECK((at::equal(on_device.weight, on_host.weight)));
  const auto expected = local_tensors(on_device.optimizer.state()),
             found = local_tensors(on_host.optimizer.state());
  CHECK((at::equal(found.at("step"), at::full({}, 2, at::kDouble))));
  CHECK((at::equal(expected.at("step"), found.at("step"))));
  CHECK((at::equal(expected.at("sum/weight"), found.at("sum/weight"))));
  CHECK((at::equal(found.at("sum/weight"), at::tensor({2.75F, 8.0F}))));
}

}  // namespace scaletrain::optim
