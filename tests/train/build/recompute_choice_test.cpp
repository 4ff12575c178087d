#include "lib/train/build/recompute_choice.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "lib/train/build/build.h"
#include "lib/train/run/step.h"
#include "lib/units/memory_meter.h"
#include "tests/dist/ranks.h"
#include "tests/train/run/run_support.h"

namespace scaletrain::train {
namespace {

recipe::Recipe with_budget(const testing::TinyRun& tiny, std::int64_t megabytes) {
  return tiny.recipe({testing::kVitChange, "batch.per_device=8",
                      fmt::format("recompute.budget_mb={}", megabytes)});
}

// The units that run again, and the megabytes that activations took in a step.
std::string step_of(const recipe::Recipe& recipe, const core::WorkerEnv& env) {
  const auto run = build_run(recipe, env, std::nullopt, {});
  const auto meter = std::make_shared<units::MemoryMeter>(at::kCPU);
  const units::MemoryWatch watch(meter);
  StepRunner steps(step_parts(*run), /*late=*/false);
  steps.run(0, 0.1, 0);
  steps.drain();
  run->mesh->end("end");
  const double bytes =
      static_cast<double>(meter->peak_of_each().of(units::MemoryKind::kActivations));
  return fmt::format("{} {:.3f}", run->state.recomputed_units.size(), bytes / 1e6);
}

struct Measured {
  int units = -1;
  double megabytes = 0;
};

Measured parsed(const std::string& text) {
  Measured result;
  CAPTURE(text);
  REQUIRE(std::sscanf(text.c_str(), "%d %lf", &result.units, &result.megabytes) == 2);
  return result;
}

}  // namespace

TEST_CASE("activations keep to the budget, with no more units than that takes, on all ranks") {
  const testing::TinyRun tiny;
  const auto of = [&](std::int64_t megabytes) {
    return parsed(testing::said_apart([&] { return step_of(with_budget(tiny, megabytes), {}); }));
  };
  const Measured whole = of(1000);
  CHECK(whole.units == 0);
  REQUIRE(whole.megabytes > 3);
  const auto budget = static_cast<std::int64_t>(whole.megabytes / 2);
  const Measured half = of(budget);
  CHECK(half.units > 0);
  CHECK(half.units < 12);
  CHECK(half.megabytes <=
        1.1 * static_cast<double>(budget));  // what operations need for a moment on top
  CHECK(half.megabytes >= 0.6 * static_cast<double>(budget));

  const auto results = testing::run_ranks({.world_size = 2}, [&](const core::WorkerEnv& env) {
    const auto run = build_run(with_budget(tiny, budget), env, std::nullopt, {});
    run->mesh->end("end");
    return fmt::format("{}", fmt::join(run->state.recomputed_units, " "));
  });
  CHECK(results[0].status == 0);
  CHECK(!results[0].text.empty());
  CHECK(results[0].text == results[1].text);
}

TEST_CASE("a checkpoint's choice is taken where the budget is the same and the units are there") {
  const testing::TinyRun tiny;
  const auto chosen = [&](std::int64_t budget_before, const std::vector<std::string>& before) {
    return testing::said_apart([&] {
      const auto run = build_run(with_budget(tiny, 1000), {}, std::nullopt, {});
      run->state.recompute_budget_mb = budget_before;
      run->state.recomputed_units = before;
      choose_recomputed(*run);
      return fmt::format("{} {}", run->state.recompute_budget_mb,
                         fmt::join(run->state.recomputed_units, " "));
    });
  };
  const std::string second = testing::said_apart([&] {
    return build_run(with_budget(tiny, 1000), {}, std::nullopt, {})->engine->units().at(1).name;
  });
  CHECK(chosen(1000, {second}) == "1000 " + second);
  CHECK(chosen(1000, {"not_there"}) == "1000 ");  // measured anew: nothing has to run again
  CHECK(chosen(999, {second}) == "1000 ");
}

TEST_CASE("rank 0 says which units are recomputed, and what cannot be kept to") {
  const testing::TinyRun tiny;
  const auto log_of = [&](std::int64_t megabytes) {
    return testing::logged_apart(
        [&] { build_run(with_budget(tiny, megabytes), {}, std::nullopt, {}); });
  };
  const std::string none = log_of(1000);
  CAPTURE(none);
  CHECK(none.starts_with("recompute: 0 of "));
  CHECK(none.find(" units are recomputed: activations take ") != std::string::npos);
  CHECK(none.find("warning") == std::string::npos);
  const std::string all = log_of(1);
  CAPTURE(all);
  CHECK(all.find(" units are recomputed, ") != std::string::npos);
  CHECK(all.ends_with(
      "warning: /recompute/budget_mb: 1 is too small for this recipe; lower /batch/per_device\n"));
  const auto results = testing::run_ranks({.world_size = 2}, [&](const core::WorkerEnv& env) {
    const std::string path = tiny.path(fmt::format("log-{}", env.rank));
    dup2(open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600), STDERR_FILENO);
    build_run(with_budget(tiny, 1000), env, std::nullopt, {})->mesh->end("end");
    return std::string(std::filesystem::file_size(path) > 0 ? "said" : "silent");
  });
  CHECK(results[0].text == "said");
  CHECK(results[1].text == "silent");
}

TEST_CASE("training begins with the batch that was measured") {
  const testing::TinyRun tiny;
  CHECK(testing::said_apart([&] {
          const auto run = build_run(with_budget(tiny, 1000), {}, std::nullopt, {});
          const data::Batch batch = *run->sets.train.stream->next();
          return fmt::format("{} {}", batch.epoch, batch.position);
        }) == "0 0");
}

TEST_CASE("a choice of units that the recipe makes itself stays") {
  const testing::TinyRun tiny;
  const auto of = [&](const std::vector<std::string>& changes) {
    return parsed(testing::said_apart([&] { return step_of(tiny.recipe(changes), {}); }));
  };
  CHECK(of({testing::kVitChange, "batch.per_device=8", "recompute=all"}).megabytes <
        0.6 * of({testing::kVitChange, "batch.per_device=8"}).megabytes);
}

TEST_CASE("without a budget nothing is measured or kept") {
  const testing::TinyRun tiny;
  CHECK(testing::said_apart([&] {
          const auto run = build_run(tiny.recipe({"recompute=all"}), {}, std::nullopt, {});
          return fmt::format("{} {}", run->state.recompute_budget_mb,
                             run->state.recomputed_units.size());
        }) == "0 0");
}

}  // namespace scaletrain::train
