// The weight decay that changes from step to step.
#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include "lib/optim/optimizer.h"
#include "lib/recipe/catalog/lists.h"

namespace scaletrain::optim {
namespace {

recipe::Optimizer changing(const recipe::Row& row, double weight_decay) {
  recipe::Optimizer config;
  choose(config, row);
  config.lr = 0.1;
  config.weight_decay = weight_decay;
  config.weight_decay_end = 0.5;
  return config;
}

// The weights after two steps: a matrix, one with a weight decay of its own, a bias, and the head.
std::vector<at::Tensor> stepped(const recipe::Optimizer& config, std::optional<double> set) {
  std::vector<at::Tensor> tensors{at::full({2, 2}, 2.0), at::full({2, 2}, 2.0), at::full({2}, 2.0),
                                  at::full({2, 2}, 2.0)};
  for (at::Tensor& tensor : tensors) tensor.requires_grad_(true);
  const auto optimizer = make_optimizer(
      config, {{.name = "matrix", .tensor = tensors[0], .hidden = true},
               {.name = "own", .tensor = tensors[1], .weight_decay = 0.05, .hidden = true},
               {.name = "bias", .tensor = tensors[2], .hidden = true},
               {.name = "head", .tensor = tensors[3], .hidden = false}});
  if (set) optimizer->set_weight_decay(*set);
  for (int step = 0; step < 2; ++step) {
    for (at::Tensor& tensor : tensors) {
      tensor.mutable_grad() = at::arange(tensor.numel(), at::kFloat).view(tensor.sizes());
      tensor.mutable_grad().add_(step - 1.5);
    }
    optimizer->step(0.1);
  }
  return tensors;
}

}  // namespace

TEST_CASE(
    "set_weight_decay() has the effect of a weight decay from the start, for every optimizer") {
  for (const recipe::Row& row : recipe::optimizers().rows) {
    CAPTURE(row.name);
    for (const bool centralized : {false, true}) {
      recipe::Optimizer low = changing(row, 0.1), high = changing(row, 0.3);
      low.centralize_gradients = high.centralize_gradients = centralized;
      const auto set = stepped(low, 0.3), from_start = stepped(high, std::nullopt);
      for (std::size_t i = 0; i < set.size(); ++i) CHECK((at::equal(set[i], from_start[i])));
      const auto unset = stepped(low, std::nullopt);
      CHECK_FALSE((at::equal(set[0], unset[0])));
      CHECK_FALSE((at::equal(set[3], unset[3])));
      CHECK((at::equal(set[1], unset[1])));  // its own stays
      CHECK((at::equal(set[2], unset[2])));  // a bias has none
    }
  }
}

TEST_CASE("without an end there is no schedule, and with one it is half a cosine") {
  recipe::Optimizer config;
  config.weight_decay = 0.04;
  CHECK_FALSE(scheduled_weight_decay(config, 0, 10).has_value());
  config.weight_decay_end = 0.4;
  CHECK(*scheduled_weight_decay(config, 0, 10) == doctest::Approx(0.04));
  CHECK(*scheduled_weight_decay(config, 5, 10) == doctest::Approx(0.22));  // half way
  CHECK(*scheduled_weight_decay(config, 9, 10) > 0.39);
}

}  // namespace scaletrain::optim
