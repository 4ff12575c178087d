#include "lib/train/state/save_writers.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "lib/core/disk/read_faults.h"
#include "lib/train/build/build.h"
#include "lib/train/run/state_shards.h"
#include "tests/dist/ranks.h"
#include "tests/train/run/run_support.h"

namespace scaletrain::train {
namespace {

// Which ranks write, as each of two says: of a run whose folder rank 1 knows as `folder_of_1`.
std::string writers_of_two(const std::string& asked, const std::string& folder,
                           const std::string& folder_of_1, const core::MeshSizes& sizes = {}) {
  std::string said;
  for (const auto& result : testing::run_ranks({.world_size = 2}, [&](const core::WorkerEnv& env) {
         Run run;
         run.recipe.checkpoint.writers = asked;
         run.recipe.output = env.rank == 1 ? folder_of_1 : folder;
         run.group = std::make_unique<dist::Group>(env, at::kCPU, std::chrono::milliseconds(20000));
         run.mesh = std::make_unique<dist::Mesh>(*run.group, core::MeshPlan(2, sizes));
         const auto writers = make_writers(run);
         run.group->end("the end");
         return writers ? fmt::format("{} of {}", writers->rank(), writers->count())
                        : std::string("none");
       })) {
    said += result.text + "; ";
  }
  return said;
}

}  // namespace

TEST_CASE("all ranks write where all see the folder, which is left as it was") {
  const test::TemporaryFolder folder;
  const std::string run = folder.file("run"), other = folder.file("other");
  CHECK(writers_of_two("all", run, run) == "0 of 2; 1 of 2; ");
  CHECK(core::names_in(run).empty());
  CHECK(writers_of_two("rank_0", run, run) == "none; none; ");
  const std::string refused = "/checkpoint/writers: rank 1 does not see rank 0's folder " + run +
                              "\n  use \"auto\" or \"rank_0\", or an /output on a file system that "
                              "all nodes share; ";
  // Each says it with the folder as it knows it.
  CHECK(writers_of_two("all", run, other).starts_with(refused));
  CHECK(core::names_in(run).empty());
  // Each has a part of the model.
  CHECK(writers_of_two("auto", run, run, {.replica = 1, .shard = 2}) == "0 of 2; 1 of 2; ");
  CHECK(writers_of_two("auto", run, other, {.replica = 1, .shard = 2})
            .starts_with("/output: rank 1 does not see rank 0's folder " + run +
                         ", into which each rank writes its part of the model\n  use a folder on a "
                         "file system that all nodes share; "));
}

TEST_CASE("the bytes of a state are the model's, the optimizer's and the means'") {
  const testing::TinyRun tiny;
  const auto said = [&](const std::vector<std::string>& changes) {
    return testing::said_apart([&] {
      return std::to_string(bytes_of_state(*build_run(tiny.recipe(changes), {}, {}, {})));
    });
  };
  constexpr std::int64_t kModel = 4 * (5 * 192 + 5 + 3 * 5 + 3);
  CHECK(said({}) == std::to_string(2 * kModel));  // with the momentum
  CHECK(said({"ema={}"}) == std::to_string(3 * kModel));
  CHECK(said({"optimizer.momentum=0"}) == std::to_string(kModel));
}

TEST_CASE("rank 0 writes a small state, and the state of a single rank, unless \"all\" is set") {
  const testing::TinyRun tiny;
  for (const auto& result : testing::run_ranks({.world_size = 2}, [&](const core::WorkerEnv& env) {
         std::string said;
         const auto run = build_run(tiny.recipe({R"(batch={"per_device": 2})"}), env, {}, {});
         for (const char* const asked : {"auto", "all", "rank_0"}) {
           run->recipe.checkpoint.writers = asked;
           said += make_writers(*run) ? "together " : "alone ";
         }
         run->group->end("the end");
         return said;
       })) {
    CHECK(result.text == "alone together alone ");
  }
  CHECK(testing::said_apart([&] {
          const auto run = build_run(tiny.recipe({"checkpoint.writers=all"}), {}, {}, {});
          return std::string(make_writers(*run) ? "together" : "alone");
        }) == "alone");
}

}  // namespace scaletrain::train
