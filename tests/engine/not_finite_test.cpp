// Engine::first_not_finite: the first unit of a forward whose output is not finite.
#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include <limits>

#include "lib/engine/engine.h"
#include "lib/recipe/catalog/lists.h"
#include "lib/recipe/describe.h"

namespace scaletrain::engine::not_finite_test {
namespace {

// Three units that multiply by a weight each; the second counts its forwards.
class Chain : public nn::Model {
 public:
  Chain() {
    for (const char* const name : {"a", "b", "c"}) register_parameter(name, at::ones({1}));
  }
  std::vector<units::Unit> units() override {
    std::vector<units::Unit> all;
    for (const std::string name : {"a", "b", "c"}) {
      all.push_back(unit(name, {""}, [this, name](units::Flow flow, const units::Context& context) {
        if (name == "b" && !context.again) ++counted;
        return units::Flow{flow[0] * named_parameters()[name]};
      }));
    }
    return all;
  }
  void set(const char* name, float value) {
    const at::NoGradGuard no_grad;
    named_parameters()[name].fill_(value);
  }
  int counted = 0;
};

class SumTask : public task::Task {
 public:
  SumTask() : Task(recipe::tasks().front()) {}
  task::OpenSet open(task::Split, const task::Reader&, core::BufferPool&) override { return {}; }
  task::Example prepare(const data::Batch&, bool) const override { return {}; }
  std::int64_t fixed_targets(std::int64_t samples) const override { return samples; }
  at::Tensor loss_sum(const at::Tensor& output, const task::Example&) const override {
    return output.sum().log();  // not finite where the sum is 0
  }
  std::int64_t sum_count() const override { return 1; }
  at::Tensor sums(const at::Tensor& output, const task::Example&) const override { return output; }
  std::vector<recipe::Measured> finish(task::Split, std::span<const double>,
                                       const at::Tensor&) const override {
    return {};
  }
};

struct Bench {
  std::string found(const at::Tensor& input) {
    return engine.first_not_finite(0, 0, {.input = input, .target = {}});
  }

  Chain model;
  SumTask task;
  dist::Group group{core::WorkerEnv(), at::kCPU, std::chrono::seconds(1)};
  dist::Mesh mesh{group, core::MeshPlan(1)};
  std::unique_ptr<precision::Precision> precision =
      precision::make_precision(recipe::blank_recipe().precision, {});
  std::unique_ptr<parallel::Placement> placement =
      parallel::make_placement({{.name = "a", .tensor = model.parameters()[0]}}, mesh);
  Engine engine{{model, task, *precision, *placement, mesh}, 1};
};

}  // namespace

TEST_CASE("the first unit with an output that is not finite is named, and nothing is counted") {
  Bench bench;
  CHECK(bench.found(at::ones({2})) == "");
  bench.model.set("b", std::numeric_limits<float>::infinity());
  CHECK(bench.found(at::ones({2})) == "b");
  bench.model.set("a", std::numeric_limits<float>::quiet_NaN());
  CHECK(bench.found(at::ones({2})) == "a");
  CHECK(bench.model.counted == 0);
  CHECK_FALSE(bench.model.parameters()[0].grad().defined());
}

TEST_CASE("an input and a loss that are not finite are named as such") {
  Bench bench;
  CHECK(bench.found(at::full({2}, std::numeric_limits<float>::quiet_NaN())) == "input");
  CHECK(bench.found(at::zeros({2})) == "loss");
}

TEST_CASE("an input of integers is finite") {
  Bench bench;
  CHECK(bench.found(at::ones({2}, at::kLong)) == "");
}

}  // namespace scaletrain::engine::not_finite_test
