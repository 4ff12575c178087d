#include "lib/train/loop/reporter.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "lib/core/process/time_ledger.h"
#include "lib/train/build/build.h"
#include "tests/dist/ranks.h"
#include "tests/train/run/run_support.h"

namespace scaletrain::train {
namespace {

// The lines of metrics.jsonl but the ledger's, "train 3" for the event and its step; `field` of
// each where given.
std::string lines_of(const Run& run, const char* field = "step") {
  std::ifstream file(std::filesystem::path(run.recipe.output) / "metrics.jsonl");
  std::string text;
  for (std::string line; std::getline(file, line);) {
    const auto json = nlohmann::json::parse(line);
    if (json.at("event") == "ledger") continue;
    text += fmt::format("{} {}; ", json.at("event").get<std::string>(), json.at(field).dump());
  }
  return text;
}

// Step number `step`, from 1.
StepResult result_of(std::int64_t step) {
  return {.facts = {.step = step - 1, .lr = 0.5}, .loss = 1.5, .grad_norm = 2};
}

std::int64_t reporter_clock_ns = 0;

// Lets seconds pass on `row` of this thread's ledger.
void spend(core::TimeRow row, double seconds) {
  const core::TimeScope scope(row);
  reporter_clock_ns += static_cast<std::int64_t>(seconds * 1e9);
}

std::string said_alone(const std::function<std::string(Run&, const core::WorkerEnv&)>& body) {
  const testing::TinyRun tiny;
  return testing::said_apart([&] {
    core::WorkerEnv env;
    env.console_fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
    const auto run = build_run(tiny.recipe(), env, std::nullopt, {});
    return body(*run, env);
  });
}

}  // namespace

TEST_CASE("lines are written of the first step and of those that are due") {
  for (const bool late : {false, true}) {
    CHECK(said_alone([&](Run& run, const core::WorkerEnv& env) {
            Reporter reporter(run, env, std::nullopt, late);
            std::string said;
            for (int step = 1; step <= 4; ++step) {
              reporter.drain();
              reporter.step(result_of(step), 1, step == 1, step == 3);
              said += "| " + lines_of(run);
            }
            reporter.drain();
            return said + "| " + lines_of(run);
          }) == (late ? "| | train 1; | train 1; | train 1; train 3; | train 1; train 3; "
                      : "| train 1; | train 1; | train 1; train 3; | train 1; train 3; "
                        "| train 1; train 3; "));
  }
}

TEST_CASE("a late line is of the step that it was asked for, not of what came since") {
  const std::string said = said_alone([](Run& run, const core::WorkerEnv& env) {
    Reporter reporter(run, env, std::nullopt, /*late=*/true);
    run.state.order_digest = 0xAB;
    reporter.step(result_of(1), 2, true, false);
    run.state.order_digest = 0xCD;
    run.state.skipped_samples = 5;
    reporter.drain();
    return lines_of(run, "order_digest") + lines_of(run, "skipped_samples") +
           lines_of(run, "samples_per_s") + lines_of(run, "loss");
  });
  CHECK(said == "train \"00000000000000ab\"; train 0; train 2.0; train 1.5; ");  // 4 in 2 s
}

TEST_CASE("times are a step's on the slowest rank, and only rank 0 writes") {
  for (const bool late : {false, true}) {
    const testing::TinyRun tiny;
    const auto results = testing::run_ranks({.world_size = 2}, [&](const core::WorkerEnv& given) {
      core::WorkerEnv env = given;
      env.console_fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
      const auto run = build_run(tiny.recipe(), env, std::nullopt, {});
      if (env.rank == 1) run->recipe.output = tiny.path("other");
      Reporter reporter(*run, env, std::nullopt, late);
      core::TimeLedger ledger([] { return reporter_clock_ns; });
      const core::LedgerOfThread use(&ledger);
      ledger.leave(core::TimeRow::kOther);
      // Two steps of 3 s each: rank 0 waits 0.5 s for data in each, rank 1 twice as long and then
      // 1 s for rank 0.
      for (int step = 1; step <= 2; ++step) {
        const double data_s = 0.5 * (env.rank + 1);
        spend(core::TimeRow::kDataWait, data_s);
        spend(core::TimeRow::kBackward, 3 - data_s - env.rank);
        spend(core::TimeRow::kCommunication, env.rank);
        reporter.step(result_of(step), 3, false, step == 2);
      }
      reporter.drain();
      reporter.slow({.step = 2, .ranks = {{.rank = 1, .phase = "data"}}});
      const bool is_there = std::filesystem::exists(tiny.path("other"));
      run->group->end("the end");
      if (env.rank == 1) return std::string(is_there ? "wrote" : "wrote nothing");
      std::filesystem::path file = std::filesystem::path(run->recipe.output) / "metrics.jsonl";
      std::ifstream lines(file);
      std::string line;
      std::getline(lines, line);
      const auto train = nlohmann::json::parse(line);
      std::getline(lines, line);
      const auto times = nlohmann::json::parse(line);
      std::getline(lines, line);
      const auto slow = nlohmann::json::parse(line);
      return fmt::format(
          "data {} compute {}; ledger of rank {}: {}, mean wait {}, straggler {} s; slow {}",
          train.at("data_time").get<double>(), train.at("compute_time").get<double>(),
          times.at("rank").get<int>(), times.at("seconds").at("backward").get<double>(),
          times.at("mean").at("exposed_communication").get<double>(),
          times.at("straggler_s").get<double>(), slow.at("rank").get<int>());
    });
    // Rank 1's data; what rank 0 computed in the rest of its step.
    CHECK(results[0].text ==
          "data 1 compute 2.5; ledger of rank 0: 5, mean wait 1, straggler 2 s; slow 1");
    CHECK(results[1].text == "wrote nothing");
  }
}

}  // namespace scaletrain::train
