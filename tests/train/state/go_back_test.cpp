#include "lib/train/state/go_back.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <set>
#include <string>

#include "lib/format/checkpoint/checkpoint_folder.h"
#include "lib/train/build/build.h"
#include "lib/train/integrity/bit_digest.h"
#include "tests/dist/ranks.h"
#include "tests/train/run/run_support.h"

namespace scaletrain::train {
namespace {

// Digests of the model, its averages and its optimizer, in their order.
std::string digests(const Run& run) {
  std::string text;
  const auto add = [&text](const units::Shards& shards) {
    for (const auto& [name, shard] : shards) {
      text += fmt::format("{} {} ", name, bit_digest(shard.tensor).item<std::int64_t>());
    }
  };
  add(run.learner.shards());
  add(run.learner.optimizer->state());
  for (const auto& mean : run.means) add(mean->state());
  return text;
}

}  // namespace

TEST_CASE("a run that goes back has weights, averages, optimizer and state of the checkpoint") {
  const testing::TinyRun tiny;
  const recipe::Recipe recipe =
      tiny.recipe({R"(checkpoint={"every": {"steps": 2}, "keep_last": 9})", "ema.decay=0.5"});
  const auto checkpoint = [&](int step) {
    return format::checkpoint_path(recipe.output + "/checkpoints", step);
  };
  const auto ranks = testing::run_ranks({.world_size = 1}, [&](const core::WorkerEnv& /*env*/) {
    std::string said = testing::ended(recipe);
    const auto run = build_run(recipe, {}, checkpoint(4), {});
    const auto early = build_run(recipe, {}, checkpoint(2), {});
    const std::string late = digests(*run);
    go_back(*run, checkpoint(2));
    return fmt::format("{}, step {}, moved: {}, same: {}", said, run->state.step,
                       digests(*run) != late, digests(*run) == digests(*early));
  });
  CHECK(ranks[0].text == "code 0 after step 4, step 2, moved: true, same: true");
}

}  // namespace scaletrain::train
