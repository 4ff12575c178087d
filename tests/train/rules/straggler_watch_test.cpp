#include "lib/train/rules/straggler_watch.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <chrono>
#include <string>

#include "lib/core/clock.h"
#include "lib/core/process/time_ledger.h"
#include "tests/count_reads.h"
#include "tests/dist/ranks.h"

namespace scaletrain::train {
namespace {

constexpr double kSlowS = 0.06;  // for data, in a window: 6 ms a step, more than kLeastLoss

// "40: rank 1 by data;" for ranks that were found slow by step 40.
std::string text_of(const std::optional<SlowRanks>& slow) {
  std::string text;
  if (!slow || slow->ranks.empty()) return text;
  text = fmt::format("{}:", slow->step);
  for (const observe::Straggler& rank : slow->ranks) {
    text += fmt::format(" rank {} by {};", rank.rank, rank.phase);
  }
  return text;
}

// What a rank hears in 45 steps; rank 1 waits for its data in each window.
std::string watched(const core::WorkerEnv& env, bool late) {
  dist::Group group(env, at::kCPU, std::chrono::seconds(30));
  core::TimeLedger ledger;
  const core::LedgerOfThread use(&ledger);
  ledger.leave(core::TimeRow::kOther);  // which counts for nothing
  StragglerWatch watch(group, late);
  std::string said;
  int last = 0;
  const int reads = testing::count_reads([&] {
    for (int step = 1; step <= 45; ++step) {
      if (env.rank == 1 && step % 10 == 0) {
        const core::TimeScope wait(core::TimeRow::kDataWait);
        for (const core::SteadyTime begin = core::now(); core::seconds_since(begin) < kSlowS;) {
        }
      }
      while (const auto slow = watch.drain()) {
        said += text_of(slow);
        last = step;
      }
      said += text_of(watch.step(step));
    }
  });
  return fmt::format("{} {} reads, last late in step {}", said, reads, last);
}

}  // namespace

TEST_CASE("a rank that is slow in three windows is reported by all, at once or a step later") {
  for (const auto& result : testing::run_ranks(
           {.world_size = 2}, [](const core::WorkerEnv& env) { return watched(env, false); })) {
    CHECK(result.text == "30: rank 1 by data; 0 reads, last late in step 0");
  }
  for (const auto& result : testing::run_ranks(
           {.world_size = 2}, [](const core::WorkerEnv& env) { return watched(env, true); })) {
    CHECK(result.text == "30: rank 1 by data; 0 reads, last late in step 41");
  }
}

TEST_CASE("a rank that is alone exchanges nothing") {
  dist::Group group({}, at::kCPU, std::chrono::seconds(30));
  StragglerWatch watch(group, /*late=*/true);
  for (int step = 1; step <= 20; ++step) CHECK(!watch.step(step));
  CHECK(!watch.drain());
}

}  // namespace scaletrain::train
