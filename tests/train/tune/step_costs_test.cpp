#include "lib/train/tune/step_costs.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <memory>
#include <string>
#include <vector>

#include "lib/train/tune/batch_search.h"
#include "tests/dist/ranks.h"
#include "tests/train/run/run_support.h"

namespace scaletrain::train {
namespace {

using units::MemoryKind;

std::string memory_of(const recipe::Recipe& recipe, const core::WorkerEnv& env) {
  const units::MemoryUse use = measure_memory(recipe, env, nn::built_in_factories()).memory;
  return fmt::format("{} {} {}", use.of(MemoryKind::kParameters), use.of(MemoryKind::kGradients),
                     use.total());
}

constexpr std::int64_t kGreedyModel = 4 * 3 * 192;  // bytes of its weights
constexpr std::int64_t kExtra = 4'000'000;
std::int64_t extra_bytes = 0;  // of this rank

// Takes so much more for a moment.
class Greedy : public nn::Model {
 public:
  Greedy() : weight_(register_parameter("weight", at::zeros({3, 3 * 8 * 8}))) {}
  std::vector<units::Unit> units() override {
    return {unit("all", {""}, [this](units::Flow flow, const units::Context&) -> units::Flow {
      const at::Tensor extra = at::zeros({extra_bytes}, at::kByte);
      return {flow[0].flatten(1).matmul(weight_.t())};
    })};
  }
  void initialise(const std::string& /*name*/, const at::Tensor& logical,
                  at::Generator /*generator*/) const override {
    logical.zero_();
  }

 private:
  at::Tensor weight_;
};

const nn::Factories& greedy_models() {
  static const nn::Factories models = [] {
    nn::Factories result("model");
    result.add("mlp", [](const recipe::Model&, std::int64_t) -> std::shared_ptr<nn::Model> {
      return std::make_shared<Greedy>();
    });
    return result;
  }();
  return models;
}

}  // namespace

// The buckets that ranks exchange are blocks of gradients, not of what is there beside.
TEST_CASE("all ranks report the memory of the one that needs most") {
  const testing::TinyRun tiny;
  const auto results = testing::run_ranks({.world_size = 2}, [&](const core::WorkerEnv& env) {
    extra_bytes = env.rank == 1 ? kExtra : 0;
    const units::MemoryUse use = measure_memory(tiny.recipe(), env, greedy_models()).memory;
    return fmt::format("{} {} {}", use.total(), use.total() > kExtra,
                       use.of(MemoryKind::kOther) < 2 * kGreedyModel);
  });
  CHECK(results[0].status == 0);
  CHECK(results[0].text.ends_with(" true true"));
  CHECK(results[0].text == results[1].text);
}

TEST_CASE("memory is the parameters', the gradients' and what is there for a moment") {
  const testing::TinyRun tiny;
  const std::string text = testing::said_apart([&] { return memory_of(tiny.recipe(), {}); });
  CAPTURE(text);
  long parameters = 0, gradients = 0, total = 0;
  REQUIRE(std::sscanf(text.c_str(), "%ld %ld %ld", &parameters, &gradients, &total) == 3);
  CHECK(parameters > 0);
  CHECK(total >= parameters + gradients);
}

// fc1 has 5 x 192 and 5 numbers, the head 3 x 5 and 3: 983 of 4 bytes.
TEST_CASE("blocks that last are counted for what they hold, in the first steps too") {
  constexpr std::int64_t kModel = 4 * 983;
  const testing::TinyRun tiny;
  const recipe::Recipe recipe = tiny.recipe({R"(optimizer={"name": "adamw", "lr": 0.1})"});
  for (const bool first : {false, true}) {
    CAPTURE(first);
    const std::string text = testing::said_apart([&] {
      const units::MemoryUse use =
          first ? measure_first_steps(recipe, {}, nn::built_in_factories())
                : measure_memory(recipe, {}, nn::built_in_factories()).memory;
      return fmt::format(
          "{} {} {} {}", use.of(MemoryKind::kParameters), use.of(MemoryKind::kGradients) >= kModel,
          use.of(MemoryKind::kOptimizer) >= 2 * kModel, use.of(MemoryKind::kOther) < kModel);
    });
    CHECK(text == fmt::format("{} true true true", kModel));
  }
}

TEST_CASE("images that grow are measured at their full size") {
  const testing::TinyRun tiny;
  const auto inputs_of = [&](const std::vector<std::string>& changes) {
    return testing::said_apart([&] {
      return fmt::format("{}", measure_memory(tiny.recipe(changes), {}, nn::built_in_factories())
                                   .memory.of(MemoryKind::kInputs));
    });
  };
  std::vector<std::string> changes{R"(model={"name": "mobilenet_v3_small", "num_classes": 3})",
                                   "data.image_size=32"};
  const std::string whole = inputs_of(changes);
  CHECK(std::stoll(whole) >= 4 * 3 * 32 * 32 * 4);  // 4 images of floats
  changes.emplace_back(R"(data.resize_ramp={"from": 8, "over": {"steps": 100}, "multiple_of": 8})");
  CHECK(inputs_of(changes) == whole);
}

TEST_CASE("the micro-batch that fits is found first, and said") {
  const testing::TinyRun tiny;
  const recipe::Recipe recipe =
      tiny.recipe({R"(batch={"per_device": "auto", "global": 12, "memory_mb": 100})"});
  const auto found = [&](bool memory) {
    return testing::said_apart([&] {
      const nn::Factories& models = nn::built_in_factories();
      const BeforeData find = [&](Run& run) { choose_per_device(run, {}, models); };
      const StepCost cost = memory ? measure_memory(recipe, {}, models, find)
                                   : measure_speed(recipe, {}, 1, models, find);
      return fmt::format("{}", cost.auto_per_device);
    });
  };
  CHECK(found(true) == "12");
  CHECK(found(false) == "12");
}

TEST_CASE("a step takes time") {
  const testing::TinyRun tiny;
  CHECK(testing::said_apart([&] {
          const double step_s =
              measure_speed(tiny.recipe(), {}, 3, nn::built_in_factories()).seconds;
          return fmt::format("{}", step_s > 1e-5 && step_s < 1);
        }) == "true");
}

}  // namespace scaletrain::train
