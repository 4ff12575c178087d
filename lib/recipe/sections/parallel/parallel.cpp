#include "lib/recipe/sections/parallel/parallel.h"

#include <fmt/format.h>

#include "lib/core/error.h"
#include "lib/core/text/text.h"
#include "lib/recipe/schema/object.h"
#include "lib/recipe/sections/checkpoint.h"
#include "lib/recipe/sections/precision.h"

namespace scaletrain::recipe {
namespace {

constexpr double kMostRanks = 65536, kMostChunks = 64, kMostContextRanks = 1024;

// Describes why so many micro-batches of a step do not fit, and what to use instead; "": nothing.
struct Unfit {
  std::string found, remedy;
};

Unfit unfit(const Parallel& parallel, std::int64_t micro_batches) {
  const core::PipelineKind kind = parallel.pipeline_kind();
  if (core::can_schedule(kind, parallel.pipeline_shape(micro_batches))) return {};
  const std::int64_t ranks = parallel.pipeline;
  if (micro_batches < ranks) {
    return {fmt::format("{} of a step {} fewer than the {} ranks of the pipeline",
                        core::counted(micro_batches, "micro-batch"),
                        micro_batches == 1 ? "is" : "are", ranks),
            fmt::format("use at least {}, better 4 times as many", ranks)};
  }
  const std::int64_t below = micro_batches / ranks * ranks;
  return {
      fmt::format("{} micro-batches of a step are no multiple of the {} ranks of an interleaved "
                  "pipeline",
                  micro_batches, ranks),
      fmt::format("use {} or {}, or another schedule", below, below + ranks)};
}

// Checks that each stage has a unit, if the model's row says how many there are; the worker checks
// other models (lib/engine/stages.cpp).
void check_stages(const Parallel& parallel, const Model& model, const Node& tree,
                  Problems& problems) {
  const auto refuse = [&](const char* key, const std::string& found, const std::string& remedy) {
    problems.add(written_at(tree, {"parallel", key}), fmt::format("/parallel/{}", key), found,
                 remedy);
  };
  const core::PipelineShape shape = parallel.pipeline_shape(1);
  const std::int64_t units = units_of(model).value_or(shape.stages());
  if (units == 1) {
    return refuse(
        "pipeline",
        fmt::format("{} has one unit, and each pipeline stage needs at least one", model.name),
        "leave it out");
  }
  if (shape.stages() <= units) return;
  const std::string chunks = shape.chunks == 1 ? ""
                                               : fmt::format(", {} chunks on each of {} ranks,",
                                                             shape.chunks, shape.ranks);
  const std::string found =
      fmt::format("{} stages{} of a model that has {} units", shape.stages(), chunks, units);
  std::string remedy = fmt::format("use at most {} stages", units);
  if (shape.ranks > units) return refuse("pipeline", found, remedy);
  const std::int64_t most = units / shape.ranks;  // chunks, of which an interleaved schedule has 2
  remedy += most >= 2 ? fmt::format(": at most {} chunks", most) : R"(: "schedule": "1f1b")";
  refuse("chunks", found, remedy);
}

TypePtr types_of(std::optional<ShardTypes>& value) {
  return optional(value, [](ShardTypes& inner) {
    auto keys = std::make_unique<Object>();
    keys->add("parameters",
              choice(inner.parameters,
                     {{"bf16", "Half the bytes; weights are rounded."}, {"fp32", "Exact."}}),
              "Dtype of the all-gather of linear and convolution weights. Default: fp32. Local "
              "shards stay fp32.")
        .add("reduce",
             choice(inner.reduce,
                    {{"bf16", "Half the bytes; gradients are rounded."}, {"fp32", "Exact."}}),
             "Dtype of the gradient reduce-scatter. Default: fp32.")
        .at_least_one({"parameters", "reduce"});
    return keys;
  });
}

}  // namespace

core::MeshSizes Parallel::mesh() const {
  core::MeshSizes sizes{.pipe = static_cast<int>(pipeline),
                        .replica = {},
                        .shard = static_cast<int>(shard),
                        .context = static_cast<int>(context),
                        .tensor = static_cast<int>(tensor),
                        .expert = static_cast<int>(expert)};
  if (replica) sizes.replica = static_cast<int>(*replica);
  return sizes;
}

core::PipelineShape Parallel::pipeline_shape(std::int64_t micro_batches) const {
  const bool has_chunks = pipeline_kind() == core::PipelineKind::kInterleaved;
  return {.ranks = static_cast<int>(pipeline),
          .micros = static_cast<int>(micro_batches),
          .chunks = has_chunks ? static_cast<int>(chunks) : 1};
}

TypePtr describe(Parallel& value) {
  auto keys = std::make_unique<Object>();
  keys->add("replica",
            optional(value.replica,
                     [](std::int64_t& count) { return integer(count, from(1).to(kMostRanks)); }),
            "Data-parallel size: number of model replicas, each trained on different samples. "
            "Default: all ranks divided by the other sizes.")
      .add(
          "shard", integer(value.shard, from(1).to(kMostRanks)),
          "ZeRO/FSDP sharding size: number of data-parallel ranks that share one copy of the "
          "training state. Default: 1, no sharding. Less than all ranks is hybrid sharding (HSDP).")
      .add("shard_level",
           choice(value.shard_level, {{"optimizer", "ZeRO-1: shards the optimizer state."},
                                      {"gradients", "ZeRO-2: shards gradients too."},
                                      {"parameters",
                                       "ZeRO-3 or FSDP: shards parameters too, and all-gathers "
                                       "those of each unit while it runs."}}),
           "ZeRO stage: state that is sharded if `shard` is above 1. Default: parameters.")
      .add("types", types_of(value.types),
           "Communication dtypes of sharded models, as FSDP's MixedPrecisionPolicy. Default: fp32.")
      .add("expert", integer(value.expert, from(1).to(kMostRanks)),
           "Expert-parallel size: number of ranks that share the experts of an MoE model. Divides "
           "the data-parallel size and the number of experts, and is a multiple of `shard`. "
           "Default: 1.")
      .add("context", integer(value.context, from(1).to(kMostContextRanks)),
           "Context-parallel size (ring attention): number of ranks that split each sequence and "
           "pass keys and values around. Default: 1.")
      .add("tensor", integer(value.tensor, from(1).to(kMostTensorRanks)),
           "Tensor-parallel size, as Megatron-LM: number of ranks that split the weights of each "
           "layer and train on the same samples. Default: 1.")
      .add("sequence", flag(value.sequence),
           "Sequence parallelism, as Megatron-LM: splits the activations between tensor-parallel "
           "layers along tokens. Default: false. Needs `tensor` above 1.")
      .add("pipeline", integer(value.pipeline, from(1).to(kMostRanks)),
           "Pipeline-parallel size: number of ranks over which the layers are split into stages. "
           "Micro-batches (batch.accumulate) flow through them. Default: 1.")
      .add("schedule",
           choice(value.schedule,
                  {{"1f1b",
                    "1F1B: alternates one forward and one backward pass, so that few activations "
                    "are in memory."},
                   {"gpipe", "GPipe: all forward passes, then all backward passes."},
                   {"interleaved",
                    "Interleaved 1F1B: several virtual stages per rank, for a smaller bubble."},
                   {"zero_bubble", "Zero bubble: weight gradients are deferred into the bubble."}}),
           "Pipeline schedule: order of forward and backward micro-batches. Default: 1f1b.")
      .add("chunks", integer(value.chunks, from(2).to(kMostChunks)),
           "Virtual stages per rank in the interleaved schedule. Default: 2.")
      .add("balance",
           choice(
               value.balance,
               {{"parameters", "Gives each stage about the same number of parameters."},
                {"time",
                 "Gives each stage about the same compute time, measured when training begins."}}),
           "Criterion for balancing pipeline stages. Default: parameters.");
  return keys;
}

void check(const Parallel& parallel, const Precision& precision, const Node& tree,
           Problems& problems) {
  if (parallel.shard == 1 || !parallel.types || parallel.types->parameters == "fp32") return;
  const auto refuse = [&](const std::string& found, const std::string& remedy) {
    problems.add(written_at(tree, {"parallel", "types", "parameters"}),
                 "/parallel/types/parameters", found, remedy);
  };
  if (parallel.shard_level != "parameters") {
    refuse(fmt::format(R"("shard_level": "{}" gathers the weights themselves, not a copy)",
                       parallel.shard_level),
           R"(use "shard_level": "parameters", or "fp32")");
  }
  if (precision.name != "bf16") {
    refuse(
        fmt::format(R"(layers of "precision": "{}" need weights of another dtype)", precision.name),
        R"(use "precision": "bf16", or "fp32")");
  }
}

void check(const Parallel& parallel, const Checkpoint& checkpoint, const Node& tree,
           Problems& problems) {
  const std::int64_t shard = parallel.shard;
  if (checkpoint.writers == "rank_0" && (shard > 1 || parallel.pipeline > 1)) {
    const bool is_shard = shard > 1;
    problems.add(written_at(tree, {"checkpoint", "writers"}), "/checkpoint/writers",
                 fmt::format("rank 0 has only a part of the model with \"{}\": {}",
                             is_shard ? "shard" : "pipeline", is_shard ? shard : parallel.pipeline),
                 R"(use "auto": each rank writes its own part)");
  }
}

void check(const Parallel& parallel, const Batch& batch, const Node& tree, Problems& problems) {
  if (parallel.pipeline == 1) return;
  if (batch.is_automatic()) {
    problems.add(written_at(tree, {"batch", "per_device"}), "/batch/per_device",
                 R"("auto" cannot measure the memory of pipeline stages)", "use a number");
    return;
  }
  if (batch.global) return;  // the number of micro-batches depends on the ranks then
  const Unfit wrong = unfit(parallel, batch.accumulate.value_or(1));
  if (wrong.found.empty()) return;
  problems.add(written_at(tree, {"batch", "accumulate"}), "/batch/accumulate", wrong.found,
               wrong.remedy);
}

void check(const Parallel& parallel, const Model& model, const std::optional<Recompute>& recompute,
           const Node& tree, Problems& problems) {
  if (parallel.pipeline == 1) return;
  check_stages(parallel, model, tree, problems);
  if (recompute && !recompute->is_none() && parallel.schedule == "zero_bubble") {
    problems.add(
        written_at(tree, {"recompute"}), "/recompute",
        "a zero_bubble schedule keeps activations for weight gradients, and recompute frees them",
        R"(leave it out, or use "schedule": "1f1b")");
  }
  if (recompute && recompute->budget_mb) {
    problems.add(written_at(tree, {"recompute", "budget_mb"}), "/recompute/budget_mb",
                 "does not know how many micro-batches a pipeline stage stores",
                 R"(name the units: "all", or "every")");
  }
}

void check_micro_batches(const Parallel& parallel, const BatchPlan& batch) {
  if (parallel.pipeline == 1 || batch.accumulate == 0) return;
  const core::BatchSizes sizes = batch.sizes();
  for (const core::BatchSizes::Stage& stage : sizes.stages()) {
    const Unfit wrong = unfit(parallel, batch.micro_steps(stage.batch));
    if (wrong.found.empty()) continue;
    const std::int64_t micro = batch.global / batch.accumulate;
    throw core::RecipeError(
        "/batch", wrong.found,
        fmt::format("{}; one is {} samples of the global batch", wrong.remedy, micro));
  }
}

}  // namespace scaletrain::recipe
