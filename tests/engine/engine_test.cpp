#include "lib/engine/engine.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include <optional>
#include <vector>

#include "lib/recipe/describe.h"

namespace scaletrain::engine {
namespace {

// y = w x with dropout in front; the loss is the sum of y over the batch.
class Line : public nn::Model {
 public:
  explicit Line(double dropout)
      : dropout_(dropout), weight_(register_parameter("weight", at::ones({4}))) {}
  std::vector<units::Unit> units() override {
    return {unit("line", {""}, [this](units::Flow flow, const units::Context&) -> units::Flow {
      return {at::dropout(flow[0], dropout_, is_training()) * weight_};
    })};
  }

 private:
  double dropout_;
  at::Tensor weight_;
};

class SumTask : public task::Task {
 public:
  SumTask() : Task(recipe::tasks().front()) {}
  task::OpenSet open(task::Split, const task::Reader&, core::BufferPool&) override { return {}; }
  task::Example prepare(const data::Batch&, bool) const override { return {}; }
  std::int64_t fixed_targets(std::int64_t samples) const override { return samples; }
  at::Tensor loss_sum(const at::Tensor& output, const task::Example&) const override {
    return output.sum();
  }
  std::int64_t sum_count() const override { return 1; }
  at::Tensor sums(const at::Tensor& output, const task::Example&) const override {
    return output.sum().view({1}).to(at::kDouble);
  }
  std::vector<recipe::Measured> finish(task::Split, std::span<const double>) const override {
    return {};
  }
};

class Given : public MicroBatches {
 public:
  explicit Given(std::vector<at::Tensor> inputs) : inputs_(std::move(inputs)) {}
  std::int64_t count() const override { return static_cast<std::int64_t>(inputs_.size()); }
  task::Example next() override { return {.input = inputs_.at(read++), .target = {}}; }

  std::size_t read = 0;

 private:
  std::vector<at::Tensor> inputs_;
};

// An engine of one rank over a Line.
struct Bench {
  explicit Bench(double dropout = 0, std::uint64_t seed = 3)
      : model(dropout),
        group(core::WorkerEnv(), at::kCPU, std::chrono::seconds(1)),
        precision(precision::make_precision(recipe::blank_recipe().precision, {})),
        parallel(model.parameters(), group, {}),
        engine({model, task, *precision, parallel, group}, seed) {}

  // The gradient after a step over `inputs`, and the sum of losses that was handed out.
  at::Tensor step(std::int64_t number, std::vector<at::Tensor> inputs, double weight = 1) {
    Given batches(std::move(inputs));
    engine.run(number, batches, at::full({}, weight), [&](const at::Tensor& sum) {
      loss = sum.item<double>();
      read_before_last_backward = batches.read;
    });
    return model.parameters()[0].grad().clone();
  }

  Line model;
  SumTask task;
  dist::Group group;
  std::unique_ptr<precision::Precision> precision;
  parallel::DataParallel parallel;
  Engine engine;
  double loss = 0;
  std::size_t read_before_last_backward = 0;
};

}  // namespace

TEST_CASE("gradients are the weighted sum over the micro-batches, and start anew at every step") {
  Bench bench;
  const at::Tensor a = at::arange(8, at::kFloat).view({2, 4}), b = at::ones({2, 4});
  for (int again = 0; again < 2; ++again) {
    const at::Tensor gradient = bench.step(again, {a, b}, 0.5);
    CHECK(at::equal(gradient, 0.5 * (a.sum(0) + b.sum(0))));
    CHECK(bench.loss == 28 + 8);
    CHECK(bench.read_before_last_backward == 2);
  }
}

TEST_CASE("dropout draws by seed, step and micro-batch, and by nothing before") {
  const at::Tensor ones = at::ones({64, 4});
  Bench first(0.5), other_seed(0.5, 4);
  const at::Tensor at_five = first.step(5, {ones});
  CHECK_FALSE(at::equal(first.step(6, {ones}), at_five));
  at::rand({17});
  CHECK(at::equal(first.step(5, {ones}), at_five));
  CHECK_FALSE(at::equal(other_seed.step(5, {ones}), at_five));
  // The second micro-batch of a step has a mask of its own.
  CHECK_FALSE(at::equal(first.step(5, {ones, ones}), 2 * at_five));
}

TEST_CASE("an evaluation gives the task's sums and no gradient") {
  Bench bench(0.5);
  bench.model.eval();
  const at::NoGradGuard no_grad;
  CHECK(bench.engine.evaluate({.input = at::ones({3, 4}), .target = {}}).item<double>() == 12);
  CHECK_FALSE(bench.model.parameters()[0].grad().defined());
}

}  // namespace scaletrain::engine
