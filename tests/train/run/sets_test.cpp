#include "lib/train/run/sets.h"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <fstream>

#include "lib/data/loader/image_batch.h"
#include "tests/train/run/run_support.h"

namespace scaletrain::train {
namespace {

const core::MeshPlan kTwoRanks(2);

// What is opened of `recipe` for `rank` of `plan`, where training stands at `state`.
std::string opened(const recipe::Recipe& recipe, format::TrainState state, int rank = 1,
                   const core::MeshPlan& plan = kTwoRanks) {
  return testing::said_apart([&] {
    core::WorkerEnv env;
    env.rank = env.local_rank = rank;
    env.world_size = env.local_world_size = plan.world_size();
    const auto task = task::make_task(recipe, at::kCPU);
    std::vector<dist::Claim> claims;
    const Sets sets = open_sets(recipe, env, plan, at::kCPU, *task, state, {}, claims,
                                recipe.sync.name != "every_step");
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

// The labels of the first batch of data.val, where the checkpoint has these classes.
std::string labels_of_val(const recipe::Recipe& recipe, const format::ClassNames& classes) {
  return testing::said_apart([&] {
    const auto task = task::make_task(recipe, at::kCPU);
    std::vector<dist::Claim> claims;
    format::TrainState state;
    const Sets sets =
        open_sets(recipe, {}, core::MeshPlan(1), at::kCPU, *task, state, classes, claims);
    const data::Batch batch = *sets.stream(task::Split::kVal)->next();
    return fmt::format("{}", fmt::join(data::labels_of(batch), " "));
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
        "3 steps an epoch, at 2/1; claims: the class names of data.train, the number of samples of "
        "data.train, the digest of data.train (names, labels and sizes), the digest of 16 samples "
        "of data.train, the number of samples of data.val, the digest of data.val (names, labels "
        "and sizes), first at 12 of epoch 2, 4 for validation, no test");
}

TEST_CASE("the ranks of each decoupled replica evaluate a whole held-out set together") {
  const testing::TinyRun tiny;
  const recipe::Recipe recipe = tiny.recipe({"sync=diloco"});
  const auto seen = [&](int rank, const core::MeshPlan& plan) {
    const std::string said = opened(recipe, at(0, 0), rank, plan);
    return std::stoi(said.substr(said.find("epoch 0, ") + 9));
  };
  const int all = seen(0, core::MeshPlan(1));
  for (const core::MeshSizes& sizes :
       {core::MeshSizes{.replica = {}, .shard = 2}, core::MeshSizes{.replica = {}, .expert = 2}}) {
    const core::MeshPlan plan(4, sizes);
    for (const int first : {0, 2}) {
      CHECK(seen(first, plan) < all);
      CHECK(seen(first, plan) + seen(first + 1, plan) == all);
    }
  }
}

TEST_CASE("ranks with the same data-parallel rank read the same blocks") {
  const testing::TinyRun tiny;
  const core::MeshPlan plan(4, {.pipe = 1, .replica = {}, .shard = 1, .tensor = 2});
  const std::string first = opened(tiny.recipe(), at(2, 1), 0);
  const std::string second = opened(tiny.recipe(), at(2, 1));
  CHECK(first != second);
  for (int rank = 0; rank < 4; ++rank) {
    CAPTURE(rank);
    CHECK(opened(tiny.recipe(), at(2, 1), rank, plan) == (rank < 2 ? first : second));
  }
}

TEST_CASE("a set that became too small for the step goes on with the next epoch") {
  const testing::TinyRun tiny;
  CHECK(opened(tiny.recipe({"data.val=null"}), at(2, 5)) ==
        "3 steps an epoch, at 3/0; claims: the class names of data.train, the number of samples of "
        "data.train, the digest of data.train (names, labels and sizes), the digest of 16 samples "
        "of data.train, first at 4 of epoch 3, no test");
}

TEST_CASE("labels are numbered as the checkpoint's classes, without one as the training set's") {
  const testing::TinyRun tiny;
  std::ofstream(tiny.path("classes.json")) << R"(["a", "b", "c"])";
  std::filesystem::create_directory(tiny.path("apart"));
  std::filesystem::copy(tiny.path("val.tar"), tiny.path("apart/val.tar"));
  std::ofstream(tiny.path("apart/classes.json")) << R"(["c", "a", "b"])";
  const recipe::Recipe recipe = tiny.recipe({"data.val.shards=" + tiny.path("apart/val.tar")});
  // The first labels of data.val are stored as 0, 1, 2, 0.
  CHECK(labels_of_val(recipe, {}) == "2 0 1 2");
  CHECK(labels_of_val(recipe, {{"b", "a", "c"}, "the checkpoint"}) == "2 1 0 2");
  CHECK(labels_of_val(recipe, {{"a", "b", "x"}, "the checkpoint"})
            .find("has the class \"c\", which the checkpoint does not have") != std::string::npos);
}

}  // namespace scaletrain::train
