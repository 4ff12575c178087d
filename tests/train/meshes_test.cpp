// Models on meshes of one axis and of several against the whole model in one process, and those
// that compute activations again against those that keep them: layout x model x option, a line
// each.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/dist/ranks.h"
#include "tests/long_form.h"
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
         return against_one_process(env, mesh_layouts(), mesh_cases(), CaseChoice::kPairs);
       })) {
    CHECK(result.text == "");
    CHECK(result.status == 0);
  }
}

// Of one axis, of as many as 8 ranks.
const std::vector<MeshLayout>& single_layouts() {
  constexpr bool kSequence = true;
  static const std::vector<MeshLayout> layouts{
      {"shard 4, optimizer", mesh_of(1, 4, 1, "optimizer")},
      {"shard 4, gradients", mesh_of(1, 4, 1, "gradients")},
      {"shard 4, parameters", mesh_of(1, 4, 1, "parameters")},
      {"tensor 4", mesh_of(1, 1, 4)},
      {"sequence 4", mesh_of(1, 1, 4, "", "1f1b", kSequence)},
      {"replica x pipeline 2, gpipe", mesh_of(2, 1, 1, "", "gpipe")},
      {"replica x pipeline 2, 1f1b", mesh_of(2, 1, 1, "", "1f1b")},
      {"replica x pipeline 2, interleaved", mesh_of(2, 1, 1, "", "interleaved")},
      {"replica x pipeline 2, zero_bubble", mesh_of(2, 1, 1, "", "zero_bubble")},
      {"pipeline 4, gpipe", mesh_of(4, 1, 1, "", "gpipe")},
      {"pipeline 4, 1f1b", mesh_of(4, 1, 1, "", "1f1b")},
      {"pipeline 4, interleaved", mesh_of(4, 1, 1, "", "interleaved")},
      {"pipeline 4, zero_bubble", mesh_of(4, 1, 1, "", "zero_bubble")},
      {"shard 8, optimizer", mesh_of(1, 8, 1, "optimizer"), 8},
      {"shard 8, gradients", mesh_of(1, 8, 1, "gradients"), 8},
      {"shard 8, parameters", mesh_of(1, 8, 1, "parameters"), 8},
      {"tensor 8", mesh_of(1, 1, 8), 8},
      {"sequence 8", mesh_of(1, 1, 8, "", "1f1b", kSequence), 8},
      {"replica x pipeline 4, 1f1b", mesh_of(4, 1, 1, "", "1f1b"), 8},
      {"pipeline 8, gpipe", mesh_of(8, 1, 1, "", "gpipe"), 8},
      {"pipeline 8, 1f1b", mesh_of(8, 1, 1, "", "1f1b"), 8},
      {"pipeline 8, zero_bubble", mesh_of(8, 1, 1, "", "zero_bubble"), 8},
  };
  return layouts;
}

// With a head for each of 8 ranks, and a unit for each stage.
ModelOptions of_eight(ModelOptions options) {
  options["heads"] = std::int64_t{8};
  options["depth"] = std::int64_t{7};
  return options;
}

TEST_CASE("models on meshes of one axis have one process's gradients, norm and loss") {
  ModelOptions llama = of_eight(small_llama());
  llama["kv_heads"] = std::int64_t{8};
  const std::vector<MeshCase> cases{
      {.name = "tied, clipped", .model = "gpt2", .options = of_eight(small_gpt2()), .clip = 0.2},
      {.name = "apart", .model = "llama", .options = llama}};
  for (const auto& result :
       run_ranks({.world_size = kMeshRanks, .limit_s = 580}, [&](const auto& env) {
         return against_one_process(env, single_layouts(), cases, CaseChoice::kEach);
       })) {
    CHECK(result.text == "");
    CHECK(result.status == 0);
  }
}

constexpr int kRecomputeRanks = 4;

const std::vector<MeshLayout>& recompute_layouts() {
  static const std::vector<MeshLayout> layouts{
      {"replicas", mesh_of(1, 1, 1)},
      {"shard 4, optimizer", mesh_of(1, 4, 1, "optimizer")},
      {"shard 4, gradients", mesh_of(1, 4, 1, "gradients")},
      {"shard 4, parameters", mesh_of(1, 4, 1)},
      {"tensor 2", mesh_of(1, 1, 2)},
      {"pipeline 4, gpipe", mesh_of(4, 1, 1, "", "gpipe")},
      {"pipeline 4, 1f1b", mesh_of(4, 1, 1)},
      {"pipeline 2, interleaved", mesh_of(2, 1, 1, "", "interleaved")},
      {"shard x tensor", mesh_of(1, 2, 2, "gradients")},
      {"pipeline x shard", mesh_of(2, 2, 1)},
      {"pipeline x shard, interleaved", mesh_of(2, 2, 1, "parameters", "interleaved")},
      {"pipeline x tensor", mesh_of(2, 1, 2)},
  };
  return layouts;
}

// Losses, norms and gradients of this rank, step after step, and what it evaluates then.
std::vector<at::Tensor> trained_bits(const MeshCase& one, const recipe::Parallel& parallel,
                                     std::unique_ptr<dist::Group> group) {
  MeshJob job(one, parallel, std::move(group));
  const std::int64_t readers = job.run.mesh->plan().readers();
  std::vector<at::Tensor> bits;
  for (int step = 0; step < kMeshSteps; ++step) {
    job.step(step, readers);
    bits.push_back(at::tensor({job.loss, job.norm}, at::kDouble));
    for (const units::NamedParameter& own : job.run.engine->owned()) {
      bits.push_back(own.tensor.grad().clone());
    }
    job.update();
  }
  bits.push_back(job.evaluate(readers));
  job.run.mesh->end("the end");
  return bits;
}

std::string with_and_without(const core::WorkerEnv& env, const std::vector<MeshCase>& cases) {
  at::set_num_threads(1);
  dist::Group world(env, at::kCPU, std::chrono::seconds(280));
  std::vector<int> members;
  for (int rank = 0; rank < kRecomputeRanks; ++rank) members.push_back(rank);
  std::string text;
  std::vector<ShownRow> rows;
  for (const MeshLayout& layout : recompute_layouts()) {
    rows.push_back({.values = with_pairs(axes_shown(layout))});
  }
  std::size_t number = 0;
  for (const std::size_t i : covering_rows(rows)) {
    const MeshLayout& layout = recompute_layouts()[i];
    for (MeshCase one : every_second(cases, number++ % 2)) {
      std::vector<at::Tensor> found[2];
      for (const bool recomputes : {false, true}) {
        one.recomputes = recomputes;
        const std::string name =
            fmt::format("{}, {}, {}", layout.name, one.name, recomputes ? "again" : "kept");
        found[recomputes ? 1 : 0] =
            trained_bits(one, layout.parallel, std::make_unique<dist::Group>(world, members, name));
      }
      bool same = found[0].size() == found[1].size();
      for (std::size_t k = 0; same && k < found[0].size(); ++k) {
        same = at::equal(found[0][k], found[1][k]);
      }
      if (!same) text += fmt::format("{}: {}: other bits\n", layout.name, one.name);
    }
  }
  world.end("the end");
  return text;
}

TEST_CASE("on each mesh activations that are computed again have the bits of those kept") {
  ModelOptions drawing = small_gpt2();
  drawing["dropout"] = 0.1;
  const std::vector<MeshCase> cases{{.name = "dropout", .model = "gpt2", .options = drawing},
                                    {.name = "apart", .model = "llama", .options = small_llama()}};
  for (const auto& result :
       run_ranks({.world_size = kRecomputeRanks, .limit_s = 280},
                 [&](const auto& env) { return with_and_without(env, cases); })) {
    CHECK(result.text == "");
    CHECK(result.status == 0);
  }
}

}  // namespace
}  // namespace scaletrain::testing
