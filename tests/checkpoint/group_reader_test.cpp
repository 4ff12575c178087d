// Ranks that read one checkpoint; the test process itself starts no thread.
#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include <chrono>
#include <string>
#include <utility>

#include "lib/checkpoint/checkpoint.h"
#include "lib/checkpoint/shard_reader.h"
#include "lib/core/disk/disk.h"
#include "tests/checkpoint/contents_support.h"
#include "tests/dist/ranks.h"
#include "tests/temporary_folder.h"

namespace scaletrain::checkpoint {
namespace {

at::Tensor matrix() { return at::arange(35, at::kFloat).view({5, 7}); }

// A range of the matrix in two slices, and a tensor that both ranks have.
units::Shards shards_of_rank(int rank) {
  const std::int64_t first = 17 * rank;
  return {{"matrix",
           {.tensor = at::zeros({9}),
            .shape = {5, 7},
            .slices = {format::range_piece({5, 7}, first, first + 4),
                       format::range_piece({5, 7}, first + 6, first + 11)}}},
          {"norm", units::full_shard(at::zeros({3}, at::kDouble))}};
}

}  // namespace

TEST_CASE("each rank reads its shards, or rank 0 reads and broadcasts: the values are equal") {
  const test::TemporaryFolder run;
  for (const ReadBy by : {ReadBy::kEachRank, ReadBy::kRank0}) {
    CAPTURE(static_cast<int>(by));
    for (const auto& result :
         testing::run_ranks({.world_size = 2}, [&](const core::WorkerEnv& env) -> std::string {
           dist::Group group(env, at::kCPU, std::chrono::seconds(30));
           FullContents contents;
           contents.model = {{"matrix", matrix()}, {"norm", at::full({3}, 2.5)}};
           contents.state.step = 1;
           contents.recipe = "{}";
           if (env.rank == 0) save(core::system_disk(), run.path, contents, {.last = 1});
           group.barrier("saved");
           const auto file = [&]() -> std::filesystem::path {
             if (by == ReadBy::kRank0 && env.rank != 0) return "/nowhere";
             return run.path / "checkpoints/step-00000001/model.safetensors";
           };
           const units::Shards shards = shards_of_rank(env.rank);
           GroupReader(group, by, file, shards, {.casts_floats = true}).read();
           group.end("the end");
           const at::Tensor flat = matrix().view({-1});
           const std::int64_t first = 17 * env.rank;
           const at::Tensor expected =
               at::cat({flat.narrow(0, first, 4), flat.narrow(0, first + 6, 5)});
           std::string wrong;
           if (!at::equal(shards.at("matrix").tensor, expected)) wrong += "matrix ";
           if (!shards.at("norm").tensor.eq(2.5).all().item<bool>()) wrong += "norm ";
           return wrong;
         })) {
      CHECK(result.text == "");
      CHECK(result.status == 0);
    }
  }
}

}  // namespace scaletrain::checkpoint
