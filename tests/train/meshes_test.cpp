// Models on meshes of several axes against the whole model in one process: layout x model x option,
// a line each.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "tests/dist/ranks.h"
#include "tests/train/meshes_support.h"

namespace scaletrain::testing {
namespace {

recipe::Parallel mesh_of(std::int64_t pipeline, std::int64_t shard, std::int64_t tensor,
                         const char* level = "parameters", const char* schedule = "1f1b",
                         bool sequence = false) {
  recipe::Parallel parallel;
  parallel.pipeline = pipeline;
  parallel.shard = shard;
  parallel.tensor = tensor;
  parallel.shard_level = level;
  parallel.schedule = schedule;
  parallel.sequence = sequence;
  return parallel;
}

const std::vector<MeshLayout>& mesh_layouts() {
  constexpr bool kSequence = true;
  static const std::vector<MeshLayout> layouts{
      {"shard x tensor, optimizer", mesh_of(1, 2, 2, "optimizer")},
      {"shard x tensor, gradients", mesh_of(1, 2, 2, "gradients")},
      {"shard x tensor, parameters", mesh_of(1, 2, 2, "parameters")},
      {"shard x sequence, optimizer", mesh_of(1, 2, 2, "optimizer", "1f1b", kSequence)},
      {"shard x sequence, gradients", mesh_of(1, 2, 2, "gradients", "1f1b", kSequence)},
      {"shard x sequence, parameters", mesh_of(1, 2, 2, "parameters", "1f1b", kSequence)},
      {"pipeline x tensor, gpipe", mesh_of(2, 1, 2, "", "gpipe")},
      {"pipeline x tensor, 1f1b", mesh_of(2, 1, 2, "", "1f1b")},
      {"pipeline x tensor, interleaved", mesh_of(2, 1, 2, "", "interleaved")},
      {"pipeline x tensor, zero_bubble", mesh_of(2, 1, 2, "", "zero_bubble")},
      {"pipeline x sequence, 1f1b", mesh_of(2, 1, 2, "", "1f1b", kSequence)},
      {"pipeline x sequence, zero_bubble", mesh_of(2, 1, 2, "", "zero_bubble", kSequence)},
      {"pipeline x shard, optimizer", mesh_of(2, 2, 1, "optimizer")},
      {"pipeline x shard, gradients", mesh_of(2, 2, 1, "gradients")},
      {"pipeline x shard, parameters", mesh_of(2, 2, 1, "parameters")},
      {"pipeline x shard, gpipe", mesh_of(2, 2, 1, "parameters", "gpipe")},
      {"pipeline x shard, interleaved", mesh_of(2, 2, 1, "parameters", "interleaved")},
      {"pipeline x shard, interleaved gradients", mesh_of(2, 2, 1, "gradients", "interleaved")},
      {"pipeline x shard, zero_bubble optimizer", mesh_of(2, 2, 1, "optimizer", "zero_bubble")},
      {"pipeline x shard, zero_bubble gradients", mesh_of(2, 2, 1, "gradients", "zero_bubble")},
      {"pipeline x shard, zero_bubble parameters", mesh_of(2, 2, 1, "parameters", "zero_bubble")},
      {"replica x shard x tensor", mesh_of(1, 2, 2, "gradients"), 8},
      {"replica x shard x sequence", mesh_of(1, 2, 2, "parameters", "1f1b", kSequence), 8},
      {"replica x pipeline x tensor", mesh_of(2, 1, 2, "", "zero_bubble"), 8},
      {"replica x pipeline x shard", mesh_of(2, 2, 1, "gradients"), 8},
      {"replica x pipeline x shard, interleaved", mesh_of(2, 2, 1, "parameters", "interleaved"), 8},
      {"replica x pipeline x shard, zero_bubble", mesh_of(2, 2, 1, "parameters", "zero_bubble"), 8},
      {"pipeline x shard x tensor, zero_bubble", mesh_of(2, 2, 2, "gradients", "zero_bubble"), 8},
      {"pipeline x shard x tensor, optimizer", mesh_of(2, 2, 2, "optimizer"), 8},
      {"pipeline x shard x tensor, gradients", mesh_of(2, 2, 2, "gradients"), 8},
      {"pipeline x shard x sequence, interleaved",
       mesh_of(2, 2, 2, "parameters", "interleaved", kSequence), 8},
  };
  return layouts;
}

const std::vector<MeshCase>& mesh_cases() {
  static const ModelOptions drawing = [] {
    ModelOptions options = small_gpt2();
    options["dropout"] = 0.1;
    return options;
  }();
  static const ModelOptions vit{
      {"patch_size", std::int64_t{8}}, {"dim", std::int64_t{16}}, {"depth", std::int64_t{4}},
      {"heads", std::int64_t{2}},      {"mlp_ratio", 2.0},        {"pool", std::string("avg")}};
  static const std::vector<MeshCase> cases{
      {.name = "tied, clipped", .model = "gpt2", .options = small_gpt2(), .clip = 0.2},
      {.name = "tied, in chunks, recomputed",
       .model = "gpt2",
       .options = small_gpt2(),
       .recomputes = true,
       .chunk = 3},
      {.name = "apart", .model = "llama", .options = small_llama()},
      {.name = "apart, in chunks",
       .model = "llama",
       .options = small_llama(),
       .chunk = 3,
       .only = "pipeline x tensor, zero_bubble"},
      {.name = "frozen blocks", .model = "vit_tiny", .options = vit, .frozen = {"blocks.1.*"}},
      {.name = "frozen stage",
       .model = "vit_tiny",
       .options = vit,
       .frozen = {"patch_embed*", "pos_embed", "blocks.0.*", "blocks.1.*", "blocks.2.*"}},
      {.name = "dropout", .model = "gpt2", .options = drawing, .on_tensors = false},
      // Statistics of two samples would turn the last bit of a sum into another sign.
      {.name = "BatchNorm",
       .model = "resnet18",
       .options = {},
       .on_tensors = false,
       .in_doubles = true,
       .lr = 0.01,
       .only = "pipeline x shard, parameters"},
  };
  return cases;
}

TEST_CASE("models on meshes of several axes have one process's gradients, norm and loss") {
  for (const auto& result :
       run_ranks({.world_size = kMeshRanks, .limit_s = 580}, [](const auto& env) {
         return against_one_process(env, mesh_layouts(), mesh_cases());
       })) {
    CHECK(result.text == "");
    CHECK(result.status == 0);
  }
}

}  // namespace
}  // namespace scaletrain::testing
