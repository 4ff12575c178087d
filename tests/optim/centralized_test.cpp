// lib/optim/centralized.cpp.
#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include "lib/core/error.h"
#include "lib/optim/optimizer.h"

namespace {

using namespace scaletrain;
using optim::NamedParameter;

recipe::Optimizer plain_sgd() {
  recipe::Optimizer config;
  config.name = "sgd";
  config.options = {{"momentum", 0.0}, {"nesterov", false}};
  config.centralize_gradients = true;
  return config;
}

at::Tensor with_gradient(at::IntArrayRef shape, const at::Tensor& gradient) {
  at::Tensor result = at::zeros(shape).requires_grad_(true);
  result.mutable_grad() = gradient.reshape(shape).clone();
  return result;
}

TEST_CASE("the gradient of each output loses its mean, that of a bias stays") {
  const at::Tensor numbers = at::tensor({1.0F, 2.0F, 6.0F, 0.0F, 0.0F, 3.0F});
  const at::Tensor weight = with_gradient({2, 3}, numbers);
  const at::Tensor kernel = with_gradient({2, 1, 3, 1}, numbers);
  const at::Tensor bias = with_gradient({6}, numbers);
  optim::make_optimizer(plain_sgd(), {{"weight", weight}, {"kernel", kernel}, {"bias", bias}})
      ->step(1);
  // The means are 3 and 1.
  const at::Tensor expected = -at::tensor({-2.0F, -1.0F, 3.0F, -1.0F, -1.0F, 2.0F});
  CHECK((at::equal(weight.detach().flatten(), expected)));
  CHECK((at::equal(kernel.detach().flatten(), expected)));
  CHECK((at::equal(bias.detach(), -numbers)));
}

TEST_CASE("a piece of a tensor is refused: its mean is not known") {
  const NamedParameter piece{
      .name = "weight", .tensor = at::zeros({3}), .shape = {2, 3}, .begin = 3};
  CHECK_THROWS_WITH_AS(optim::make_optimizer(plain_sgd(), {piece}),
                       "/optimizer/centralize_gradients: needs whole tensors, and weight is cut "
                       "among ranks\n  use another one, or a layout that keeps tensors whole",
                       core::RecipeError);
}

}  // namespace
