#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "lib/optim/optimizer.h"
#include "lib/recipe/describe.h"
#include "lib/recipe/lists.h"

namespace {

using namespace scaletrain;  // NOLINT(google-build-using-namespace)

recipe::Optimizer optimizer_named(const std::string& name) {
  recipe::Optimizer optimizer;
  recipe::choose(optimizer, *recipe::optimizers().find(name));
  optimizer.lr = 0.1;
  optimizer.weight_decay = 0.01;
  return optimizer;
}

// Three parameters, one of them channels last, which come out the same each time.
struct ThreeParameters {
  std::vector<optim::NamedParameter> all;

  ThreeParameters() {
    at::manual_seed(5);
    all.push_back({.name = "a", .tensor = at::randn({8, 4}).requires_grad_()});
    all.push_back({.name = "b", .tensor = at::randn({5}).requires_grad_()});
    all.push_back(
        {.name = "c",
         .tensor =
             at::randn({2, 3, 3, 3}).contiguous(at::MemoryFormat::ChannelsLast).requires_grad_()});
  }
  void draw_gradients(std::uint64_t seed) const {
    at::manual_seed(seed);
    for (const optim::NamedParameter& one : all) {
      at::Tensor tensor = one.tensor;
      tensor.mutable_grad() = at::randn_like(tensor.detach());
    }
  }
};

}  // namespace

TEST_CASE("an optimizer on the host takes the steps it takes beside the model, bit for bit") {
  for (const char* const name : {"adamw", "sgd", "lion", "muon", "schedule_free_adamw"}) {
    CAPTURE(name);
    const ThreeParameters plain, hosted;
    const auto beside = optim::make_optimizer(optimizer_named(name), plain.all);
    const auto on_host = optim::make_host_optimizer(optimizer_named(name), hosted.all);
    for (std::uint64_t step = 0; step < 3; ++step) {
      plain.draw_gradients(step);
      hosted.draw_gradients(step);
      const at::Tensor found_inf = at::full({}, step == 1 ? 1.0F : 0.0F);
      beside->step(0.1, found_inf);
      on_host->step(0.1, found_inf);
    }
    for (std::size_t i = 0; i < plain.all.size(); ++i) {
      CHECK(at::equal(plain.all[i].tensor, hosted.all[i].tensor));
    }
    const auto expected = beside->state(), found = on_host->state();
    REQUIRE(expected.size() == found.size());
    for (const auto& [key, tensor] : expected) CHECK(at::equal(tensor, found.at(key)));
    const auto weights = beside->evaluation_weights(), host_weights = on_host->evaluation_weights();
    REQUIRE(weights.size() == host_weights.size());
    for (const auto& [key, tensor] : weights) CHECK(at::equal(tensor, host_weights.at(key)));
  }
}

TEST_CASE("weights that are put in before the first step count, gradients stay as they are") {
  const ThreeParameters parameters;
  const auto optimizer = optim::make_host_optimizer(optimizer_named("sgd"), parameters.all);
  const at::Tensor& weight = parameters.all[1].tensor;
  weight.detach().fill_(3);
  parameters.draw_gradients(1);
  const at::Tensor gradient = weight.grad().clone();
  optimizer->step(0);
  CHECK(at::equal(weight, at::full({5}, 3.0)));
  CHECK(at::equal(weight.grad(), gradient));
}

TEST_CASE("a state that is filled in goes on where it was taken") {
  const ThreeParameters first, second;
  const auto from = optim::make_host_optimizer(optimizer_named("schedule_free_adamw"), first.all);
  first.draw_gradients(1);
  from->step(0.1);
  const auto to = optim::make_host_optimizer(optimizer_named("schedule_free_adamw"), second.all);
  for (const auto& [key, tensor] : to->state()) tensor.copy_(from->state().at(key));
  to->resume_at(1);
  first.draw_gradients(2);
  second.draw_gradients(2);
  from->step(0.1);
  to->step(0.1);
  for (std::size_t i = 0; i < first.all.size(); ++i) {
    CHECK(at::equal(first.all[i].tensor, second.all[i].tensor));
  }
}

TEST_CASE("a parameter without a gradient is named") {
  const ThreeParameters parameters;
  const auto optimizer = optim::make_host_optimizer(optimizer_named("sgd"), parameters.all);
  CHECK_THROWS_WITH(optimizer->step(0.1),
                    "optimizer: parameter a has no gradient\n"
                    "  every parameter of a model must take part in its forward");
}
