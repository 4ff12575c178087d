#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include <vector>

#include "tests/engine/one_rank.h"

namespace scaletrain::engine {
namespace {

recipe::Recipe experts(double auxiliary) {
  return testing::recipe_of_model("mixtral", {{"vocab_size", std::int64_t{11}},
                                              {"positions", std::int64_t{16}},
                                              {"dim", std::int64_t{16}},
                                              {"depth", std::int64_t{2}},
                                              {"heads", std::int64_t{4}},
                                              {"hidden", std::int64_t{24}},
                                              {"router_aux_loss", auxiliary}});
}

// Two micro-batches of 48 tokens, of which the first has targets for 39.
std::vector<task::Example> masked_batches(const recipe::Recipe& recipe) {
  std::vector<task::Example> result{testing::example_of(recipe, 3, 1),
                                    testing::example_of(recipe, 3, 2)};
  result[0].target.narrow(1, 4, 3).fill_(-100);
  return result;
}

}  // namespace

TEST_CASE("an auxiliary loss weighs as many targets as its batch has, and is not in the loss") {
  const recipe::Recipe recipe = experts(2.0);
  const std::vector<task::Example> examples = masked_batches(recipe);
  testing::OneRank rank(recipe);
  const std::vector<at::Tensor> gradients = rank.step(0, examples);

  // Written out; OneRank weighs by 0.5.
  testing::OneRank other(recipe);
  double loss = 0;
  const std::vector<double> targets{39, 48};
  for (std::size_t i = 0; i < examples.size(); ++i) {
    const auto units = other.model->units();
    const units::Flow flow = units::run(units, {examples[i].input}, {});
    REQUIRE(flow.size() == 2);
    const at::Tensor sum = other.task->loss_sum(flow[0], examples[i]);
    loss += sum.item<double>();
    ((sum + flow[1] * targets[i]) * 0.5).backward();
  }
  CHECK(rank.loss == doctest::Approx(loss).epsilon(1e-6));
  std::size_t i = 0;
  for (const at::Tensor& parameter : other.model->parameters()) {
    CHECK(at::allclose(gradients.at(i++), parameter.grad(), 1e-5, 1e-6));
  }
}

TEST_CASE("an auxiliary loss changes gradients and not the loss, nor what is evaluated") {
  const std::vector<task::Example> examples = masked_batches(experts(0));
  testing::OneRank without(experts(0)), with(experts(2.0));
  const std::vector<at::Tensor> plain = without.step(0, examples), other = with.step(0, examples);
  CHECK(with.loss == without.loss);
  CHECK_FALSE(at::allclose(plain[1], other[1]));
  without.model->eval();
  with.model->eval();
  const at::NoGradGuard no_grad;
  CHECK(
      at::equal(with.engine.evaluate(examples[1]).sums, without.engine.evaluate(examples[1]).sums));
}

}  // namespace scaletrain::engine
