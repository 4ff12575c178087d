// Which parameters are whose in lib/optim/optimizers/muon.cpp; its numbers are compared in
// tests/parity/optimizers_test.py.
#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include "lib/core/error.h"
#include "lib/optim/optimizer.h"
#include "lib/recipe/catalog/lists.h"

namespace {

using namespace scaletrain;
using optim::NamedParameter;

recipe::Optimizer chosen(const char* name) {
  recipe::Optimizer config;
  recipe::choose(config, *recipe::optimizers().find(name));
  config.lr = 0.1;
  return config;
}

NamedParameter named(const char* name, at::IntArrayRef shape) {
  at::Tensor tensor = at::ones(shape).requires_grad_(true);
  tensor.mutable_grad() = at::arange(tensor.numel(), at::kFloat).reshape(shape) - 1.5;
  return {.name = name, .tensor = tensor};
}

std::string state_names(optim::Optimizer& optimizer) {
  std::string text;
  for (const auto& [name, tensor] : optimizer.state()) text += name + " ";
  return text;
}

TEST_CASE("muon trains matrices and kernels of hidden layers, and AdamW all others") {
  std::vector<NamedParameter> parameters{named("matrix", {2, 2}), named("kernel", {2, 1, 2, 2}),
                                         named("bias", {2}), named("head", {2, 2}),
                                         named("token", {1, 1, 2})};
  parameters[3].hidden = false;
  parameters[4].decays = false;
  const auto muon = optim::make_optimizer(chosen("muon"), parameters);
  CHECK(state_names(*muon) ==
        "exp_avg/bias exp_avg/head exp_avg/token exp_avg_sq/bias exp_avg_sq/head exp_avg_sq/token "
        "momentum_buffer/kernel momentum_buffer/matrix step ");
  muon->step(0.1);
  // AdamW's first step is as long as lr.
  CHECK((at::allclose((parameters[3].tensor.detach() - 1).abs(), at::full({2, 2}, 0.1))));
  CHECK_FALSE((at::allclose((parameters[0].tensor.detach() - 1).abs(), at::full({2, 2}, 0.1))));
}

TEST_CASE("AdamW's own peak goes the way of the schedule of lr") {
  recipe::Optimizer config = chosen("muon");
  config.options["adamw_lr"] = 0.02;
  const NamedParameter matrix = named("matrix", {2, 2}), bias = named("bias", {2});
  optim::make_optimizer(config, {matrix, bias})->step(0.05);  // half of lr
  CHECK((at::allclose((bias.tensor.detach() - 1).abs(), at::full({2}, 0.01))));
}

TEST_CASE("a tall matrix goes the way of its transpose") {
  recipe::Optimizer config = chosen("muon");
  config.options.at("adjust_lr_fn") = std::string("match_rms_adamw");  // the same for both
  const NamedParameter wide = named("wide", {2, 4});
  NamedParameter tall = named("tall", {4, 2});
  tall.tensor.mutable_grad() = wide.tensor.grad().t().contiguous();
  optim::make_optimizer(config, {wide, tall})->step(0.1);
  CHECK((at::allclose(tall.tensor.detach(), wide.tensor.detach().t(), 1e-3)));
  CHECK_FALSE((at::allclose(wide.tensor.detach(), at::ones({2, 4}), 1e-2)));
}

TEST_CASE("a model without a hidden matrix is refused") {
  NamedParameter matrix = named("head.weight", {2, 2});
  matrix.hidden = false;
  CHECK_THROWS_WITH_AS(optim::check_optimizer(chosen("muon"), {matrix}),
                       "/optimizer/name: no hidden layer has a matrix for muon to train\n"
                       "  use adamw, or a model with more layers",
                       core::RecipeError);
}

TEST_CASE("muon, adafactor and soap refuse a piece of a tensor") {
  const NamedParameter piece{
      .name = "weight", .tensor = at::zeros({3}), .shard = units::Shard{.shape = {2, 3}}};
  for (const char* const name : {"muon", "adafactor", "soap"}) {
    CHECK_THROWS_WITH_AS(optim::make_optimizer(chosen(name), {piece}),
                         "/optimizer/name: needs full tensors, and weight is sharded over ranks\n"
                         "  use another optimizer, or a layout with full tensors",
                         core::RecipeError);
  }
}

}  // namespace
