// Batch size and gradient accumulation.
#pragma once

#include <cstdint>
#include <optional>

#include "lib/core/plan/batch_sizes.h"
#include "lib/recipe/sections/section.h"

namespace scaletrain::recipe {

// Error text and remedy for "auto" on a CPU without memory_mb.
inline constexpr const char* kNoEndOnCpu = R"("auto" has no end on a CPU, which shares its memory)";
inline constexpr const char* kEndOnCpu =
    R"(add "memory_mb": N, what the tensors of a rank may take)";

struct Batch {
  std::int64_t per_device = 32;  // 0: "auto", the largest that fits (lib/train/tune/batch_search.h)
  std::optional<std::int64_t> accumulate;      // either this
  std::optional<std::int64_t> global;          // or this
  std::optional<std::int64_t> memory_mb = {};  // memory of a step's tensors with "auto"
  std::optional<core::BatchRamp> ramp = {};    // smaller global batches at first

  bool is_automatic() const { return per_device == 0; }
};

// Global batch, resolved for a number of data-parallel ranks; per_device and accumulate are 0 until
// "auto" has found them.
struct BatchPlan {
  std::int64_t per_device = 0, accumulate = 0, global = 0;
  std::optional<core::BatchRamp> ramp = {};  // earlier steps have smaller batches

  core::BatchSizes sizes() const { return core::BatchSizes(global, ramp); }
  // Returns the micro-steps of a step of `batch` samples; per_device must be known.
  std::int64_t micro_steps(std::int64_t batch) const { return batch * accumulate / global; }
};

// Returns the plan for `readers` data-parallel ranks (lib/core/plan/mesh_plan.h). Throws
// core::RecipeError ("/batch/global: ...") naming the nearest valid sizes if the global batch, or a
// size of its ramp, is not a multiple of per_device * readers (of readers with "auto").
BatchPlan divide_batch(const Batch& batch, int readers);

// Throws core::RecipeError if an epoch of `samples` samples has no complete step.
void check_epoch_of(const BatchPlan& plan, std::int64_t samples);

TypePtr describe(Batch& value);
void check(const Batch& batch, const Node& tree, Problems& problems);

// Returns the number of which every step's global batch is a multiple.
std::int64_t part_of_all(const core::BatchRamp& ramp);

}  // namespace scaletrain::recipe
