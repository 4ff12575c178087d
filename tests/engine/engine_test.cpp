#include "lib/engine/engine.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "lib/core/error.h"
#include "lib/core/philox.h"
#include "lib/recipe/describe.h"
#include "tests/dist/ranks.h"

namespace scaletrain::engine {
namespace {

// y = w x with dropout in front; the loss is the sum of y over the batch.
class Line : public nn::Model {
 public:
  explicit Line(double dropout, bool draws = true)
      : dropout_(dropout), draws_(draws), weight_(register_parameter("weight", at::ones({4}))) {}
  std::vector<units::Unit> units() override {
    units::Unit line =
        unit("line", {""}, [this](units::Flow flow, const units::Context&) -> units::Flow {
          return {at::dropout(flow[0], dropout_, is_training()) * weight_};
        });
    line.draws = draws_;
    return {line};
  }

 private:
  double dropout_;
  bool draws_;
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
  std::vector<recipe::Measured> finish(task::Split, std::span<const double>,
                                       const at::Tensor&) const override {
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
  explicit Bench(double dropout = 0, std::uint64_t seed = 3, bool draws = true)
      : model(dropout, draws),
        group(core::WorkerEnv(), at::kCPU, std::chrono::seconds(1)),
        mesh(group, core::MeshPlan(1)),
        precision(precision::make_precision(recipe::blank_recipe().precision, {})),
        placement(
            parallel::make_placement({{.name = "weight", .tensor = model.parameters()[0]}}, mesh)),
        engine({model, task, *precision, *placement, mesh}, seed) {}

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
  dist::Mesh mesh;
  std::unique_ptr<precision::Precision> precision;
  std::unique_ptr<parallel::Placement> placement;
  Engine engine;
  double loss = 0;
  std::size_t read_before_last_backward = 0;
};

// Owns what it is given, as a placement that cuts the model would; exchanges nothing.
class Pieces : public parallel::Placement {
 public:
  explicit Pieces(std::vector<units::NamedParameter> owned) : owned_(std::move(owned)) {}
  const std::vector<units::NamedParameter>& owned() const override { return owned_; }
  void start(const parallel::BucketLayout&) override {}
  void zero_grad() override {}
  void begin_micro_step(bool) override {}
  void prepare_backward(const at::Tensor&) override {}
  parallel::BucketLayout layout() const override { return {}; }

 private:
  std::vector<units::NamedParameter> owned_;
};

// Writes down what it is asked, beside the losses that backward starts from.
class Heard : public Pieces {
 public:
  using Pieces::Pieces;
  void zero_grad() override { calls += "zero "; }
  void begin_micro_step(bool synchronize) override { calls += synchronize ? "last " : "step "; }
  void prepare_backward(const at::Tensor& loss) override {
    calls += fmt::format("{} ", loss.item<double>());
  }

  std::string calls;
};

units::NamedParameter with_gradient(const char* name, const at::Tensor& gradient, bool counts) {
  at::Tensor tensor = at::zeros_like(gradient);
  tensor.mutable_grad() = gradient;
  return {.name = name, .tensor = tensor, .counts = counts};
}

}  // namespace

// The tests with ranks come first: a process that has run a backward cannot fork ones that do.

// Gradients 0 to 7, of which each of 4 ranks of a replica owns two, and a norm of 3 that all four
// own: 140 + 9. Both replicas have the same.
TEST_CASE("the norm counts each element of the model once, wherever it lies") {
  const auto results = testing::run_ranks({.world_size = 8}, [](const core::WorkerEnv& env) {
    dist::Group world(env, at::kCPU, std::chrono::seconds(30));
    dist::Mesh mesh(world, core::MeshPlan(8, {.pipe = 1, .replica = {}, .shard = 2, .tensor = 2}));
    const int place = mesh.model().rank();
    Pieces placement({with_gradient("cut", at::arange(8, at::kFloat).narrow(0, 2 * place, 2), true),
                      with_gradient("whole", at::full({1}, 3.0), place == 0),
                      {.name = "unused", .tensor = at::zeros({2})}});
    Line model(0);
    SumTask task;
    const auto precision = precision::make_precision(recipe::blank_recipe().precision, {});
    const Engine engine({model, task, *precision, placement, mesh}, 1);
    const auto sum = engine.squared_norm().item<double>();
    mesh.end("end");
    return fmt::format("{} of {} gradients", sum, engine.gradients().size());
  });
  for (const auto& result : results) CHECK(result.text == "149 of 2 gradients");
}

TEST_CASE("a rank that counts nothing has the norm of the others") {
  const auto results = testing::run_ranks({.world_size = 2}, [](const core::WorkerEnv& env) {
    dist::Group world(env, at::kCPU, std::chrono::seconds(30));
    dist::Mesh mesh(world, core::MeshPlan(2, {.pipe = 1, .replica = {}, .shard = 1, .tensor = 2}));
    Pieces placement({with_gradient("whole", at::full({4}, 3.0), env.rank == 0)});
    Line model(0);
    SumTask task;
    const auto precision = precision::make_precision(recipe::blank_recipe().precision, {});
    const Engine engine({model, task, *precision, placement, mesh}, 1);
    const auto sum = engine.squared_norm().item<double>();
    mesh.end("end");
    return fmt::format("{}", sum);
  });
  for (const auto& result : results) CHECK(result.text == "36");
}

// A data-parallel rank has the dropout of its blocks, whoever computes it.
TEST_CASE("ranks with the same data-parallel rank draw the same, others do not") {
  const auto results = testing::run_ranks({.world_size = 4}, [](const core::WorkerEnv& env) {
    dist::Group world(env, at::kCPU, std::chrono::seconds(30));
    dist::Mesh mesh(world, core::MeshPlan(4, {.pipe = 1, .replica = {}, .shard = 1, .tensor = 2}));
    Line model(0.5);
    SumTask task;
    const auto precision = precision::make_precision(recipe::blank_recipe().precision, {});
    Pieces placement({{.name = "weight", .tensor = model.parameters()[0]}});
    Engine engine({model, task, *precision, placement, mesh}, 1);
    Given batches({at::ones({64, 4}), at::ones({64, 4})});
    engine.run(0, batches, at::ones({}), [](const at::Tensor&) {});
    mesh.end("end");
    std::string text;
    for (const at::Tensor& one : engine.gradients()) {
      for (int i = 0; i < 4; ++i) text += fmt::format("{} ", one[i].item<float>());
    }
    return text;
  });
  Bench alone(0.5, 1);
  const at::Tensor ones = at::ones({64, 4});
  // Data coordinate d of 2 has blocks d and 2 + d, which one rank alone has as micro-steps.
  const at::Tensor all = alone.step(0, {ones, ones, ones, ones});
  for (int i = 0; i < 4; ++i) CHECK(results[i].text == results[i / 2 * 2].text);
  CHECK(results[0].text != results[2].text);
  double sum = 0;
  for (const auto& result : {results[0], results[2]}) {
    std::stringstream stream(result.text);
    for (double value; stream >> value;) sum += value;
  }
  CHECK(sum == all.sum().item<double>());
}

TEST_CASE(
    "gradients are the weighted sum over the micro-batches, and start from zero at every step") {
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

TEST_CASE("the generator is seeded for units that draw alone") {
  for (const bool draws : {false, true}) {
    CAPTURE(draws);
    at::Generator generator = at::globalContext().defaultGenerator(at::kCPU);
    generator.set_current_seed(7);
    const at::Tensor expected = at::rand({17});
    generator.set_current_seed(7);
    Bench(0, 3, draws).step(5, {at::ones({2, 4})});
    CHECK(at::equal(at::rand({17}), expected) == !draws);
  }
}

TEST_CASE(
    "the placement is called before each micro-step and with the tensor that its backward starts "
    "from") {
  Bench bench;
  Heard heard{std::vector<units::NamedParameter>()};
  Engine engine({bench.model, bench.task, *bench.precision, heard, bench.mesh}, 1);
  Given batches({at::ones({1, 4}), at::full({1, 4}, 2.0)});
  engine.run(0, batches, at::full({}, 0.5), [&](const at::Tensor&) { heard.calls += "sum "; });
  CHECK(heard.calls == "zero step 2 last sum 4 ");
}

TEST_CASE("a micro-batch of one rank draws by its number among those of all ranks") {
  const at::Tensor ones = at::ones({64, 4});
  Bench bench(0.5, 3);
  const at::Tensor gradient = bench.step(5, {ones, ones});
  at::Tensor expected = at::zeros({4});
  for (const std::uint64_t block : {0, 1}) {  // of the first unit
    core::Philox draw(3, core::DrawPurpose::kDropout, 5, block << 20);
    at::Generator generator = at::globalContext().defaultGenerator(at::kCPU);
    generator.set_current_seed(draw.next_u64());
    expected += at::dropout(ones, 0.5, true).sum(0);
  }
  CHECK(at::equal(gradient, expected));
}

TEST_CASE("a backward that fails says so, and one that lost a peer is worth a restart") {
  for (const bool is_lost : {false, true}) {
    CAPTURE(is_lost);
    Bench bench;
    bench.model.parameters()[0].register_hook([&](const at::Tensor& gradient) -> at::Tensor {
      if (is_lost) C10_THROW_ERROR(DistError, "a peer is gone");
      throw std::out_of_range("its own");
      return gradient;
    });
    if (is_lost) {
      CHECK_THROWS_AS(bench.step(1, {at::ones({1, 4})}), core::StoppedError);
    } else {
      CHECK_THROWS_AS(bench.step(1, {at::ones({1, 4})}), std::out_of_range);
    }
  }
}

TEST_CASE("an evaluation gives the task's sums and no gradient") {
  Bench bench(0.5);
  bench.model.eval();
  const at::NoGradGuard no_grad;
  CHECK(bench.engine.evaluate({.input = at::ones({3, 4}), .target = {}}).sums.item<double>() == 12);
  CHECK_FALSE(bench.model.parameters()[0].grad().defined());
}

}  // namespace scaletrain::engine
