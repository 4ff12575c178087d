// Models on meshes whose ranks share sequences too, against the whole model in one process: layout
// x model, a line each.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "tests/dist/ranks.h"
#include "tests/train/meshes_support.h"

namespace scaletrain::testing {
namespace {

recipe::Parallel context_mesh(std::int64_t context, std::int64_t pipeline,
                              const char* schedule = "1f1b", std::int64_t shard = 1,
                              const char* level = "parameters") {
  recipe::Parallel parallel;
  parallel.context = context;
  parallel.pipeline = pipeline;
  parallel.schedule = schedule;
  parallel.shard = shard;
  parallel.shard_level = level;
  return parallel;
}

recipe::Parallel on_tensors(recipe::Parallel parallel, bool sequence) {
  parallel.tensor = 2;
  parallel.sequence = sequence;
  return parallel;
}

const std::vector<MeshLayout>& context_layouts() {
  static const std::vector<MeshLayout> layouts{
      {"pipeline x context, gpipe", context_mesh(2, 2, "gpipe")},
      {"pipeline x context, 1f1b", context_mesh(2, 2, "1f1b")},
      {"pipeline x context, interleaved", context_mesh(2, 2, "interleaved")},
      {"pipeline x context, zero_bubble", context_mesh(2, 2, "zero_bubble")},
      {"context x sequence", on_tensors(context_mesh(2, 1), true)},
      {"pipeline x context 4", context_mesh(4, 2, "zero_bubble"), 8},
      {"replica x pipeline x context", context_mesh(2, 2, "interleaved"), 8},
      {"pipeline x shard x context, optimizer", context_mesh(2, 2, "1f1b", 2, "optimizer"), 8},
      {"pipeline x shard x context, gradients", context_mesh(2, 2, "gpipe", 2, "gradients"), 8},
      {"pipeline x shard x context, parameters", context_mesh(2, 2, "interleaved", 2), 8},
      {"pipeline x context x tensor", on_tensors(context_mesh(2, 2), false), 8},
      {"pipeline x context x sequence", on_tensors(context_mesh(2, 2, "zero_bubble"), true), 8},
      {"shard x context x sequence", on_tensors(context_mesh(2, 1, "1f1b", 2), true), 8},
  };
  return layouts;
}

const std::vector<MeshCase>& context_cases() {
  static const std::vector<MeshCase> cases{
      {.name = "tied, clipped", .model = "gpt2", .options = small_gpt2(), .clip = 0.2},
      {.name = "documents, in chunks, recomputed",
       .model = "gpt2",
       .options = small_gpt2(),
       .recomputes = true,
       .chunk = 3,
       .end_of_text = 3},
      {.name = "documents, apart", .model = "llama", .options = small_llama(), .end_of_text = 3},
  };
  return cases;
}

TEST_CASE("models on meshes that share sequences have one process's gradients, norm and loss") {
  for (const auto& result :
       run_ranks({.world_size = kMeshRanks, .limit_s = 580}, [](const auto& env) {
         return against_one_process(env, context_layouts(), context_cases(), CaseChoice::kEach);
       })) {
    CHECK(result.text == "");
    CHECK(result.status == 0);
  }
}

}  // namespace
}  // namespace scaletrain::testing
