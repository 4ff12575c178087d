#include "lib/train/build/build.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "lib/checkpoint/checkpoint.h"
#include "lib/core/disk/disk.h"
#include "lib/train/state/snapshot.h"
#include "tests/dist/ranks.h"
#include "tests/train/run/run_support.h"

namespace scaletrain::train {
namespace {

namespace fs = std::filesystem;

const parallel::BucketLayout kOther = {{0, 3}, {2, 1}};  // not the one of a fresh run

// What two ranks say of a run of `recipe`, or of rank 1's where only that is another one.
std::vector<std::string> built(const recipe::Recipe& recipe, const recipe::Recipe& of_rank_1,
                               const std::optional<fs::path>& resume, int ranks = 2) {
  std::vector<std::string> said;
  for (const auto& result :
       testing::run_ranks({.world_size = ranks}, [&](const core::WorkerEnv& env) {
         const auto run = build_run(env.rank == 1 ? of_rank_1 : recipe, env, resume, {});
         run->mesh->end("all are connected");
         return fmt::format("global {} of {} ranks, {} steps; owns {}, state {}; at {}, layout {}",
                            run->state.global_batch, run->state.world_size, run->length.total_steps,
                            run->engine->owned().size(), run->learner.optimizer->state().size(),
                            run->state.step, run->placement->layout());
       })) {
    said.push_back(result.text);
  }
  return said;
}

// A checkpoint of two ranks whose gradients travelled in other buckets.
fs::path saved_by_two(const recipe::Recipe& recipe) {
  for (const auto& result :
       testing::run_ranks({.world_size = 2}, [&](const core::WorkerEnv& env) -> std::string {
         const auto run = build_run(recipe, env, std::nullopt, {});
         run->state.step = run->state.step_in_epoch = 1;
         run->state.samples = 8;
         checkpoint::Contents contents = snapshot(*run);
         contents.state.bucket_layout = kOther;
         if (env.rank == 0) {
           checkpoint::save(core::system_disk(), recipe.output, contents, {.last = 1});
         }
         return "saved";
       })) {
    REQUIRE(result.text == "saved");
  }
  return fs::path(recipe.output) / "checkpoints/step-00000001";
}

}  // namespace

TEST_CASE("a run is built from the sections of the recipe") {
  const testing::TinyRun tiny;
  for (const std::string& said : built(tiny.recipe(), tiny.recipe(), std::nullopt)) {
    CHECK(said == "global 8 of 2 ranks, 4 steps; owns 4, state 4; at 0, layout [[3, 2, 1, 0]]");
  }
  CHECK(built(tiny.recipe(), tiny.recipe(), std::nullopt, 1)[0] ==
        "global 4 of 1 ranks, 4 steps; owns 4, state 4; at 0, layout []");
}

TEST_CASE("as many ranks go on with the checkpoint's buckets, others with their own") {
  const testing::TinyRun tiny;
  const recipe::Recipe recipe = tiny.recipe();
  const fs::path checkpoint = saved_by_two(recipe);
  for (const std::string& said : built(recipe, recipe, checkpoint)) {
    CHECK(said == "global 8 of 2 ranks, 4 steps; owns 4, state 4; at 1, layout [[0, 3], [2, 1]]");
  }
  const recipe::Recipe finer = tiny.recipe({"batch.per_device=2"});
  CHECK(built(finer, finer, checkpoint, 4)[0] ==
        "global 8 of 4 ranks, 4 steps; owns 4, state 4; at 1, layout [[3, 2, 1, 0]]");
}

TEST_CASE("ranks that would train something else stop before they train") {
  const testing::TinyRun tiny;
  for (const std::string& said :
       built(tiny.recipe(), tiny.recipe({"optimizer.lr=0.5"}), std::nullopt)) {
    CHECK(said.find("optimizer.lr of the recipe") != std::string::npos);
  }
}

}  // namespace scaletrain::train
