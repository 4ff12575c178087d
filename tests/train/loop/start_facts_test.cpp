#include "lib/train/loop/start_facts.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "lib/train/build/build.h"
#include "tests/dist/ranks.h"
#include "tests/train/run/run_support.h"

namespace scaletrain::train {

TEST_CASE("the facts of a start are those of the recipe, its sets and its ranks") {
  const testing::TinyRun tiny;
  const auto results = testing::run_ranks({.world_size = 2}, [&](const core::WorkerEnv& env) {
    const auto run = build_run(tiny.recipe(), env, std::nullopt, {});
    const observe::StartFacts facts = start_facts(*run, env);
    run->group->end("the end");
    std::string layout;
    for (const auto& axis : facts.layout) layout += fmt::format("{} {};", axis.name, axis.size);
    const std::int64_t product = facts.per_device * facts.accumulation * facts.data_parallel;
    return fmt::format(
        "{} {} samples, {} classes, batch is the product: {}, {} steps, {} ranks, {}", facts.model,
        facts.sets.front().samples.value_or(-1), facts.classes, facts.global_batch == product,
        facts.total_steps, facts.ranks, layout);
  });
  for (const auto& result : results) {
    CHECK(result.text ==
          "mlp 24 samples, 3 classes, batch is the product: true, 4 steps, 2 ranks, data 2;");
  }
}

TEST_CASE("frozen parameters are counted separately from trained ones") {
  const testing::TinyRun tiny;
  const auto frozen_and_all = [&](const std::vector<std::string>& changes) {
    return testing::said_apart([&] {
      const auto run = build_run(tiny.recipe(changes), {}, std::nullopt, {});
      const observe::StartFacts facts = start_facts(*run, {});
      return fmt::format("{} of {}", facts.frozen, facts.frozen + facts.trained);
    });
  };
  // 192 x 5 weights and 5 biases, then 5 x 3 weights and 3 biases.
  CHECK(frozen_and_all({}) == "0 of 983");
  CHECK(frozen_and_all({R"(model.freeze=["*.bias"])"}) == "8 of 983");
}

TEST_CASE("the memory of a start is that of parameters, gradients and optimizer state") {
  const testing::TinyRun tiny;
  const auto memory_of = [&](const std::vector<std::string>& changes) {
    return testing::said_apart([&] {
      const auto run = build_run(tiny.recipe(changes), {}, std::nullopt, {});
      const observe::StartFacts::Memory memory = start_facts(*run, {}).memory;
      return fmt::format("{} {} {}", memory.parameters, memory.gradients, memory.optimizer);
    });
  };
  // 983 parameters of 4 bytes; SGD with momentum keeps one value for each, plain SGD none.
  CHECK(memory_of({"optimizer.name=sgd", "optimizer.momentum=0.9"}) == "3932 3932 3932");
  CHECK(memory_of({"optimizer.name=sgd", "optimizer.momentum=0"}) == "3932 3932 0");
  // The 8 frozen biases have neither gradients nor state.
  CHECK(memory_of({R"(model.freeze=["*.bias"])", "optimizer.name=sgd", "optimizer.momentum=0.9"}) ==
        "3932 3900 3900");
}

}  // namespace scaletrain::train
