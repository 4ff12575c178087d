#include "lib/train/sets.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "tests/train/run_support.h"

namespace scaletrain::train {
namespace {

// What is opened for rank 1 of 2 of `recipe`, where training stands at `state`.
std::string opened(const recipe::Recipe& recipe, format::TrainState state) {
  return testing::said_apart([&] {
    core::WorkerEnv env;
    env.rank = env.local_rank = 1;
    env.world_size = env.local_world_size = 2;
    const auto task = task::make_task(recipe, at::kCPU);
    std::vector<dist::Claim> claims;
    const Sets sets = open_sets(recipe, env, at::kCPU, *task, state, claims);
    std::string said =
        fmt::format("{} steps an epoch, at {}/{}; claims:", sets.train.stream->steps_per_epoch(),
                    state.epoch, state.step_in_epoch);
    for (const dist::Claim& claim : claims) said += " " + claim.field + ",";
    const data::Batch batch = *sets.stream(task::Split::kTrain)->next();
    said += fmt::format(" first at {} of epoch {}", batch.position, batch.epoch);
    if (data::BatchStream* const val = sets.stream(task::Split::kVal)) {
      int count = 0;
      while (const auto part = val->next()) count += static_cast<int>(part->count);
      said += fmt::format(", {} for validation", count);
    }
    return said + (sets.stream(task::Split::kTest) == nullptr ? ", no test" : "");
  });
}

format::TrainState at(std::int64_t epoch, std::int64_t step) {
  format::TrainState state;
  state.epoch = epoch;
  state.step_in_epoch = step;
  return state;
}

}  // namespace

TEST_CASE("sets are opened for the rank's blocks, from where training stands") {
  const testing::TinyRun tiny;
  // 24 samples, 2 ranks of 4: 3 steps. Rank 1's part of validation is its second block.
  CHECK(opened(tiny.recipe(), at(2, 1)) ==
        "3 steps an epoch, at 2/1; claims: the number of samples of data.train, the digest of "
        "data.train (names, labels and sizes), the digest of 16 samples of data.train, the number "
        "of samples of data.val, the digest of data.val (names, labels and sizes), first at 12 of "
        "epoch 2, 4 for validation, no test");
}

TEST_CASE("a set that became too small for the step goes on with the next epoch") {
  const testing::TinyRun tiny;
  CHECK(opened(tiny.recipe({"data.val=null"}), at(2, 5)) ==
        "3 steps an epoch, at 3/0; claims: the number of samples of data.train, the digest of "
        "data.train (names, labels and sizes), the digest of 16 samples of data.train, first at 4 "
        "of epoch 3, no test");
}

}  // namespace scaletrain::train
