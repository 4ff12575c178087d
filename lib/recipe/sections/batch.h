// How many samples at a time.
#pragma once

#include <cstdint>
#include <optional>

#include "lib/core/plan/batch_sizes.h"
#include "lib/recipe/sections/section.h"

namespace scaletrain::recipe {

// Why "auto" is refused on a CPU without memory_mb, and what to do.
inline constexpr const char* kNoEndOnCpu = R"("auto" has no end on a CPU, which shares its memory)";
inline constexpr const char* kEndOnCpu =
    R"(add "memory_mb": N, what the tensors of a rank may take)";

struct Batch {
  std::int64_t per_device = 32;  // 0: "auto", the most that fit (lib/train/tune/batch_search.h)
  std::optional<std::int64_t> accumulate;      // either this
  std::optional<std::int64_t> global;          // or this
  std::optional<std::int64_t> memory_mb = {};  // memory of a step's tensors with "auto"
  std::optional<core::BatchRamp> ramp = {};    // smaller global batches at first

  bool is_automatic() const { return per_device == 0; }
};

// One global batch, resolved for a number of ranks that read; per_device and accumulate are 0 as
// long as they are to be found.
struct BatchPlan {
  std::int64_t per_device = 0, accumulate = 0, global = 0;
  std::optional<core::BatchRamp> ramp = {};  // the steps before have smaller ones

  core::BatchSizes sizes() const { return core::BatchSizes(global, ramp); }
  // Micro-steps of a step of `batch` samples; per_device is known.
  std::int64_t micro_steps(std::int64_t batch) const { return batch * accumulate / global; }
};

// The plan for `readers` data coordinates (lib/core/plan/mesh_plan.h). Throws core::RecipeError
// ("/batch/global: ...") where the global batch, or a number of its ramp, is not a multiple of
// per_device * readers, or with "auto" of the readers, naming the nearest sizes that would fit.
BatchPlan divide_batch(const Batch& batch, int readers);

// Throws core::RecipeError where an epoch of `samples` has no step of the plan's global batch.
void check_epoch_of(const BatchPlan& plan, std::int64_t samples);

TypePtr describe(Batch& value);
void check(const Batch& batch, const Node& tree, Problems& problems);

// Returns the number of which every step's global batch is a multiple.
std::int64_t part_of_all(const core::BatchRamp& ramp);

}  // namespace scaletrain::recipe
