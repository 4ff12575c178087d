// What the ranks of a job would own, keep and exchange, on any number of devices and without them:
// from the tables that a run lays itself out by (units, tensor plans, blocks of shards, stages,
// schedules, buckets) and the optimizer that it makes. Weights are blank, so that a model of any
// size takes no memory.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lib/core/mesh_plan.h"
#include "lib/dist/fake/network.h"
#include "lib/nn/factory.h"
#include "lib/recipe/recipe.h"

namespace scaletrain::train {

// What a rank gives to exchanges of one kind within a step.
struct Traffic {
  std::string axis;  // "replica", "shard", "tensor", "pipeline", "expert"
  std::string what;  // "gradients", "parameters", "activations", "tokens", "sums of the router"
  dist::FakeKind kind = dist::FakeKind::kAllReduce;
  std::vector<int> ranks;  // of the group
  std::int64_t calls = 0, bytes = 0;
};

// Bytes of one rank.
struct RankPlan {
  int rank = 0;
  std::vector<std::string> units;  // that it runs
  std::int64_t parameters = 0;     // and buffers, for as long as it trains
  std::int64_t gathered = 0;       // parameters of other ranks that are there for a moment
  std::int64_t gradients = 0, optimizer = 0;
  std::int64_t unsent = 0;       // of gradients, that a compressed exchange keeps for the next step
  std::int64_t activations = 0;  // of all micro-batches under way, when they are most
  int held = 1;                  // micro-batches under way, each of one chunk of the rank's units
  std::vector<Traffic> traffic;
};

struct JobPlan {
  core::MeshPlan mesh;
  recipe::BatchPlan batch;
  double idle_share = 0;             // of a pipeline
  std::vector<RankPlan> ranks = {};  // as asked for
};

// Of these ranks of `world_size`, or of the first of each place of the pipeline. Throws
// core::RecipeError where the recipe cannot be laid out so.
JobPlan plan_job(recipe::Recipe recipe, int world_size, const nn::Factories& models,
                 std::vector<int> ranks = {});

}  // namespace scaletrain::train
