#include "lib/train/run/state_shards.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "lib/train/build/build.h"
#include "tests/dist/ranks.h"
#include "tests/train/run/run_support.h"

namespace scaletrain::train {
namespace {

std::int64_t elements_of(const NamedTensors& tensors) {
  std::int64_t count = 0;
  for (const auto& [name, tensor] : tensors) count += tensor.numel();
  return count;
}

}  // namespace

TEST_CASE("a rank holds the model, or the parts that its mesh gives it, each element once") {
  const testing::TinyRun tiny;
  constexpr std::int64_t kElements = 8 * 8 * 3 * 5 + 5 + 5 * 3 + 3;  // of the mlp
  for (const std::string level : {"optimizer", "parameters"}) {
    const recipe::Recipe recipe =
        tiny.recipe({"parallel.shard=2", "parallel.shard_level=" + level, "model.freeze=fc1.bias"});
    std::int64_t all = 0, frozen = 0, owned = 0;
    for (const auto& result :
         testing::run_ranks({.world_size = 4}, [&](const core::WorkerEnv& env) -> std::string {
           const auto run = build_run(recipe, env, std::nullopt, {});
           run->mesh->end("all are connected");
           if (!is_sharded(*run)) return "not sharded";
           std::int64_t own = 0;
           for (const auto& [name, shard] : model_shards(*run)) {
             if (shard.owned) own += shard.count();
           }
           const NamedTensors held = local_tensors(model_shards(*run));
           const bool has_frozen = held.contains("fc1.bias");
           return fmt::format("{} {} {} {}", run->mesh->plan().writes(env.rank), elements_of(held),
                              has_frozen ? held.at("fc1.bias").numel() : 0, own);
         })) {
      std::istringstream words(result.text);
      std::string writes;
      std::int64_t elements = 0, of_frozen = 0, of_owned = 0;
      words >> writes >> elements >> of_frozen >> of_owned;
      if (writes != "true") continue;
      all += elements;
      frozen += of_frozen;
      owned += of_owned;
    }
    // What is not trained is cut only where parameters are.
    CHECK(frozen == (level == "parameters" ? 5 : 10));
    CHECK(owned == kElements);
    CHECK(all == kElements + (level == "parameters" ? 0 : 5));
  }
}

TEST_CASE(
    "ranks that hold parts of the model together hold and keep each element of the model once") {
  const testing::TinyRun tiny;
  constexpr const char* kVit =
      R"(model={"name": "vit_tiny", "num_classes": 3, "patch_size": 4, "dim": 16, "depth": 4,
                "heads": 2, "freeze": ["blocks.1.*"]})";
  struct Mesh {
    const char *axis, *other, *level = "gradients";
  };
  for (const Mesh& mesh : {Mesh{"pipeline", "shard"}, Mesh{"pipeline", "tensor"},
                           Mesh{"pipeline", "replica"}, Mesh{"shard", "tensor", "parameters"}}) {
    CAPTURE(mesh.axis);
    CAPTURE(mesh.other);
    const recipe::Recipe recipe = tiny.recipe(
        {kVit, fmt::format("parallel.{}=2", mesh.axis), fmt::format("parallel.{}=2", mesh.other),
         "batch.accumulate=2", fmt::format("parallel.shard_level={}", mesh.level)});
    std::int64_t all = 0, written = 0, kept = 0;
    for (const auto& result :
         testing::run_ranks({.world_size = 4}, [&](const core::WorkerEnv& env) -> std::string {
           const auto run = build_run(recipe, env, std::nullopt, {});
           run->mesh->end("all are connected");
           const NamedTensors held = local_tensors(model_shards(*run));
           std::int64_t bytes = 0, elements = 0, model = 0;
           for (const auto& item : run->learner.model->named_parameters()) {
             const auto part = run->learner.parts.find(item.key());
             model += part == run->learner.parts.end() ? item.value().numel()
                                                       : format::element_count(part->second.shape);
             const bool is_own = !run->pipeline || run->pipeline->has(item.key());
             if (!is_own) bytes += static_cast<std::int64_t>(item.value().storage().nbytes());
             if (!is_own && held.contains(item.key())) return item.key() + " is another stage's";
           }
           const bool writes = run->mesh->plan().writes(env.rank);
           for (const auto& [name, shard] : model_shards(*run)) {
             if (shard.shape.empty()) return name + " has no shape";
             if (writes && shard.owned) elements += shard.count();
           }
           return fmt::format("{} {} {}", model, elements, bytes);
         })) {
      std::istringstream words(result.text);
      std::int64_t elements = 0, bytes = 0;
      words >> all >> elements >> bytes;
      CHECK_MESSAGE(all > 0, result.text);
      written += elements;
      kept += bytes;
    }
    CHECK(written == all);
    CHECK(kept == 0);  // of other stages
  }
}

TEST_CASE("tensor-parallel shards are gathered for a checkpoint, except with decoupled replicas") {
  struct Case {
    const char* mesh;
    const char* sync;
    const char* said;
  };
  const testing::TinyRun tiny;
  for (const Case& one : {Case{"{\"tensor\": 2}", "every_step", "full tensors are gathered"},
                          Case{"{}", R"({"name": "periodic", "steps": 2})", "nothing is sharded"},
                          Case{"{\"tensor\": 2}", R"({"name": "periodic", "steps": 2})",
                               "each rank writes its shards"}}) {
    CAPTURE(one.mesh);
    CAPTURE(one.sync);
    const recipe::Recipe recipe =
        tiny.recipe({R"(model={"name": "vit_tiny", "num_classes": 3, "patch_size": 4, "dim": 16,
                               "depth": 1, "heads": 2})",
                     fmt::format("parallel={}", one.mesh), fmt::format("sync={}", one.sync)});
    for (const auto& result :
         testing::run_ranks({.world_size = 4}, [&](const core::WorkerEnv& env) -> std::string {
           const auto run = build_run(recipe, env, std::nullopt, {});
           run->mesh->end("all are connected");
           if (is_sharded(*run)) return "each rank writes its shards";
           return run->learner.parts.empty() ? "nothing is sharded" : "full tensors are gathered";
         })) {
      CHECK(result.text == one.said);
    }
  }
}

TEST_CASE("where every rank has the model, what it holds is that") {
  const testing::TinyRun tiny;
  const auto said = testing::said_apart([&]() -> std::string {
    const auto run = build_run(tiny.recipe(), {}, std::nullopt, {});
    const bool same =
        elements_of(local_tensors(model_shards(*run))) == elements_of(run->learner.tensors());
    return same && !is_sharded(*run) ? "the same" : "another";
  });
  CHECK(said == "the same");
}

}  // namespace scaletrain::train
