// What lib/engine/engine.cpp asks of each unit, by a model of two that write down when they run.
#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include <chrono>
#include <cmath>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "lib/engine/engine.h"
#include "lib/recipe/describe.h"

namespace scaletrain::engine {
namespace {

constexpr std::int64_t kWidth = 4;

// y = (e^(w x b))^2, where b is a buffer of ones, with dropout in front of the square; both units
// take tokens alone.
class Powers : public nn::Model {
 public:
  explicit Powers(double dropout)
      : dropout_(dropout),
        weight_(register_parameter("weight", at::full({kWidth}, 0.5))),
        ones_(register_buffer("ones", at::ones({kWidth}))) {}
  std::vector<units::Unit> units() override {
    std::vector<units::Unit> both{
        unit("first", {""},
             [this](units::Flow flow, const units::Context& context) -> units::Flow {
               ran += context.again ? "first again, " : "first, ";
               return {(flow[0] * weight_ * ones_).exp()};
             }),
        unit("second", {}, [this](units::Flow flow, const units::Context& context) -> units::Flow {
          ran += context.again ? "second again, " : "second, ";
          return {at::dropout(flow[0], dropout_, is_training()).square()};
        })};
    for (units::Unit& one : both) one.takes_tokens_alone = true;
    return both;
  }

  std::string ran;

 private:
  double dropout_;
  at::Tensor weight_, ones_;
};

// The loss is the sum of e^y; the scores are y.
class PowerTask : public task::Task {
 public:
  PowerTask() : Task(recipe::tasks().front()) {}
  task::OpenSet open(task::Split, const task::Reader&, core::BufferPool&) override { return {}; }
  task::Example prepare(const data::Batch&, bool) const override { return {}; }
  std::int64_t fixed_targets(std::int64_t samples) const override { return samples; }
  at::Tensor loss_sum(const at::Tensor& output, const task::Example&) const override {
    return output.exp().sum();
  }
  std::int64_t sum_count() const override { return 1; }
  at::Tensor sums(const at::Tensor& output, const task::Example&) const override {
    return output.sum().view({1}).to(at::kDouble);
  }
  std::int64_t score_columns() const override { return columns; }
  at::Tensor scores(const at::Tensor& output, const task::Example&) const override {
    return output + 1;
  }
  std::vector<recipe::Measured> finish(task::Split, std::span<const double>,
                                       const at::Tensor&) const override {
    return {};
  }

  std::int64_t columns = 0;
};

class OneBatch : public MicroBatches {
 public:
  explicit OneBatch(task::Example example) : example_(std::move(example)) {}
  std::int64_t count() const override { return 1; }
  task::Example next() override { return example_; }

 private:
  task::Example example_;
};

struct PowerBench {
  explicit PowerBench(const MemorySavings& savings = {}, double dropout = 0)
      : model(std::make_shared<Powers>(dropout)),
        group(core::WorkerEnv(), at::kCPU, std::chrono::seconds(1)),
        mesh(group, core::MeshPlan(1)),
        precision(precision::make_precision(recipe::blank_recipe().precision, {})),
        placement(
            parallel::make_placement({{.name = "weight", .tensor = model->parameters()[0]}}, mesh)),
        engine({*model, task, *precision, *placement, mesh}, /*seed=*/3, savings) {}

  at::Tensor gradient_of_step(bool again = false) {
    OneBatch batches(example());
    model->ran.clear();
    engine.run(
        5, batches, at::ones({}), [](const at::Tensor&) {}, again);
    return model->parameters()[0].grad().clone();
  }

  // Two samples of three tokens.
  static task::Example example() {
    return {.input = at::full({2, 3, kWidth}, 0.1), .target = at::zeros({2, 3}, at::kLong)};
  }

  std::shared_ptr<Powers> model;
  PowerTask task;
  dist::Group group;
  dist::Mesh mesh;
  std::unique_ptr<precision::Precision> precision;
  std::unique_ptr<parallel::Placement> placement;
  Engine engine;
};

}  // namespace

TEST_CASE("units are measured in their second run, which counts nothing, the loss with the last") {
  constexpr std::int64_t kBytes = 2 * 3 * kWidth * 4;  // of a tensor between units
  PowerBench bench;
  const std::vector<UnitCost> costs = bench.engine.measure_units(PowerBench::example());
  CHECK(bench.model->ran == "first again, first again, second again, second again, ");
  REQUIRE(costs.size() == 2);
  CHECK(costs[0].name == "first");
  CHECK(costs[1].name == "second");
  for (const UnitCost& cost : costs) {
    CHECK(cost.input_bytes == kBytes);
    CHECK(cost.saved_bytes ==
          2 * kBytes);  // x and e^(w x b), but no b; the latter and e^y of the loss
    CHECK(cost.seconds > 0);
    CHECK(cost.seconds < 10);
  }
}

TEST_CASE("a last unit that takes chunks of tokens saves nothing") {
  PowerBench bench({.recompute = {}, .chunk = 2});
  const std::vector<UnitCost> costs = bench.engine.measure_units(PowerBench::example());
  CHECK(bench.model->ran == "first again, first again, ");
  REQUIRE(costs.size() == 2);
  CHECK(costs[1].name == "second");
  CHECK(costs[1].input_bytes > 0);
  CHECK(costs[1].saved_bytes == 0);
}

TEST_CASE("a step runs each unit once, and its second pass says so to all of them") {
  PowerBench bench;
  bench.gradient_of_step();
  CHECK(bench.model->ran == "first, second, ");
  bench.gradient_of_step(/*again=*/true);
  CHECK(bench.model->ran == "first again, second again, ");
  bench.engine.set_recomputed({true, false});
  bench.gradient_of_step();
  CHECK(bench.model->ran == "first, second, first again, ");
}

TEST_CASE("what is drawn in chunks is of the seed and the step, and of nothing before") {
  for (const std::int64_t chunk : {0, 2}) {
    CAPTURE(chunk);
    PowerBench bench({.recompute = {}, .chunk = chunk}, /*dropout=*/0.5);
    bench.model->train();
    const at::Tensor once = bench.gradient_of_step();
    at::rand({17});
    CHECK(at::equal(bench.gradient_of_step(), once));
    // The first unit draws nothing that the second one could go on from.
    Engine other({*bench.model, bench.task, *bench.precision, *bench.placement, bench.mesh}, 4,
                 {.recompute = {}, .chunk = chunk});
    OneBatch batches(PowerBench::example());
    other.run(5, batches, at::ones({}), [](const at::Tensor&) {});
    CHECK_FALSE(at::equal(bench.model->parameters()[0].grad(), once));
  }
}

TEST_CASE("one chunk of all tokens draws what the whole draws") {
  const auto gradient_with = [](std::int64_t chunk) {
    PowerBench bench({.recompute = {}, .chunk = chunk}, /*dropout=*/0.5);
    bench.model->train();
    return bench.gradient_of_step();
  };
  CHECK((at::allclose(gradient_with(6), gradient_with(0))));
}

TEST_CASE("an evaluation gives scores where the task has them, and what the model gave") {
  PowerBench bench;
  bench.model->eval();
  const at::NoGradGuard no_grad;
  const at::Tensor output = bench.engine.predict(PowerBench::example());
  CHECK((output.sizes() == at::IntArrayRef({2, 3, kWidth})));
  CHECK(output[0][0][0].item<double>() == doctest::Approx(std::exp(0.1)));  // e^(0.05)^2
  const Evaluated plain = bench.engine.evaluate(PowerBench::example());
  CHECK((at::equal(plain.output, output)));
  CHECK_FALSE(plain.scores.defined());
  bench.task.columns = kWidth;
  const Evaluated scored = bench.engine.evaluate(PowerBench::example());
  REQUIRE(scored.scores.defined());
  CHECK((at::equal(scored.scores, output + 1)));
}

}  // namespace scaletrain::engine
