// Predicts the state, memory and communication of a job's ranks, for any number of devices and
// without them: from the tables that lay out a run (units, tensor plans, blocks of shards, stages,
// schedules, buckets) and its optimizer. Weights are blank, so that a model of any size takes no
// memory.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lib/core/plan/gradient_memory.h"
#include "lib/core/plan/mesh_plan.h"
#include "lib/dist/fake/network.h"
#include "lib/nn/factory.h"
#include "lib/recipe/recipe.h"
#include "lib/train/simulate/unit_profile.h"

namespace scaletrain::train {

// Communication of a rank in a step, for one kind of collective in one group.
struct Traffic {
  std::string axis;  // "replica", "shard", "tensor", "pipeline", "expert"
  std::string what;  // "gradients", "parameters", "activations", "tokens", "sums of the router"
  dist::FakeKind kind = dist::FakeKind::kAllReduce;
  std::vector<int> ranks;  // ranks of the group
  std::int64_t calls = 0, bytes = 0;
};

// Bytes of one rank, and its work.
struct RankPlan {
  int rank = 0;
  std::vector<std::string> units;  // units that the rank runs
  std::int64_t parameters = 0;     // and buffers, for as long as it trains
  std::int64_t gathered = 0;       // parameters of other ranks that are gathered temporarily
  std::int64_t gradients = 0, optimizer = 0;  // gradients: those that it applies
  core::GradientPeak
      gradient_peak;          // includes gradients that wait for their all-reduce or reduce-scatter
  std::int64_t averages = 0;  // EMA and SWA weights
  std::int64_t unsent = 0;    // error-feedback residuals of gradient compression
  std::int64_t activations = 0;  // peak over all micro-batches in flight
  StepFlops flops;
  int held = 1;  // micro-batches under way, each of one chunk of the rank's units
  std::vector<Traffic> traffic;
};

struct JobPlan {
  core::MeshPlan mesh;
  recipe::BatchPlan batch;
  double idle_share = 0;             // pipeline bubble
  std::vector<RankPlan> ranks = {};  // as requested
};

// Plans `ranks` of `world_size`; by default the first rank of each pipeline stage. Throws
// core::RecipeError if the recipe cannot be laid out.
JobPlan plan_job(recipe::Recipe recipe, int world_size, const nn::Factories& models,
                 std::vector<int> ranks = {});

}  // namespace scaletrain::train
