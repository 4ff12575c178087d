// lib/optim/centralized.cpp.
#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include "lib/core/error.h"
#include "lib/optim/optimizer.h"
#include "lib/recipe/catalog/lists.h"

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

TEST_CASE("what else is asked of an optimizer reaches the one behind") {
  for (const char* const row : {"soap", "schedule_free_adamw"}) {
    CAPTURE(row);
    recipe::Optimizer config;
    recipe::choose(config, *recipe::optimizers().find(row));
    if (config.options.contains("frequency")) config.options["frequency"] = std::int64_t{2};
    recipe::Optimizer centralized = config;
    centralized.centralize_gradients = true;
    // Gradients without a mean, which centralizing leaves as they are.
    const at::Tensor turns = at::tensor({1.0F, -1.0F, 2.0F, -2.0F});
    const auto after = [&](const recipe::Optimizer& made_of) {
      const at::Tensor weight = with_gradient({2, 2}, turns);
      const auto optimizer = optim::make_optimizer(made_of, {{"weight", weight}});
      optimizer->resume_at(1);
      for (int step = 0; step < 2; ++step) {
        weight.mutable_grad() = (step + 1) * turns.roll(2 * step).view({2, 2});
        optimizer->step(0.1);
      }
      const auto evaluated = optimizer->evaluation_weights();
      return evaluated.empty() ? weight.detach() : evaluated.at("weight");
    };
    CHECK((at::equal(after(centralized), after(config))));
  }
}

TEST_CASE("a piece of a tensor is refused: its mean is not known") {
  const NamedParameter piece{
      .name = "weight", .tensor = at::zeros({3}), .shard = units::Shard{.shape = {2, 3}}};
  CHECK_THROWS_WITH_AS(optim::make_optimizer(plain_sgd(), {piece}),
                       "/optimizer/centralize_gradients: needs full tensors, and weight is sharded "
                       "over ranks\n  use another optimizer, or a layout with full tensors",
                       core::RecipeError);
}

}  // namespace
