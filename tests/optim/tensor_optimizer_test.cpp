#include "lib/optim/tensor_optimizer.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include <cmath>
#include <vector>

namespace scaletrain::optim {
namespace {

// Keeps the gradients that it is given.
class Keeping : public TensorOptimizer {
 public:
  explicit Keeping(const std::vector<NamedParameter>& parameters)
      : TensorOptimizer({}, parameters,
                        [](const NamedParameter&) { return std::vector<TensorState>(); }) {}

  std::vector<at::Tensor> seen;

 private:
  void update(const TensorStep& one) override { seen.push_back(one.gradient.clone()); }
};

}  // namespace

TEST_CASE("an update that is left out sees zeros in place of what is not finite") {
  at::Tensor weight = at::ones({2}).requires_grad_();
  weight.mutable_grad() = at::tensor({std::nanf(""), 3.0F});
  Keeping optimizer({{.name = "weight", .tensor = weight}});
  optimizer.step(0.1, at::ones({}));
  weight.mutable_grad() = at::full({2}, 2.0);
  optimizer.step(0.1, at::zeros({}));
  REQUIRE(optimizer.seen.size() == 2);
  CHECK((at::equal(optimizer.seen[0], at::zeros({2}))));
  CHECK((at::equal(optimizer.seen[1], at::full({2}, 2.0))));
}

}  // namespace scaletrain::optim
