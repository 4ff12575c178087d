#include "lib/train/step_costs.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "tests/dist/ranks.h"
#include "tests/train/run_support.h"

namespace scaletrain::train {
namespace {

using units::MemoryKind;

std::string memory_of(const recipe::Recipe& recipe, const core::WorkerEnv& env) {
  const units::MemoryUse use = measure_memory(recipe, env, nn::built_in_factories());
  return fmt::format("{} {} {}", use.of(MemoryKind::kParameters), use.of(MemoryKind::kGradients),
                     use.total());
}

}  // namespace

TEST_CASE("all ranks report the memory of the one that needs most") {
  const testing::TinyRun tiny;
  const auto results = testing::run_ranks(
      {.world_size = 2}, [&](const core::WorkerEnv& env) { return memory_of(tiny.recipe(), env); });
  CHECK(results[0].status == 0);
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

TEST_CASE("a step takes time") {
  const testing::TinyRun tiny;
  CHECK(testing::said_apart([&] {
          const double step_s = measure_speed(tiny.recipe(), {}, 3, nn::built_in_factories());
          return fmt::format("{}", step_s > 0 && step_s < 10);
        }) == "true");
}

}  // namespace scaletrain::train
