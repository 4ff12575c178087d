#include "lib/train/tune/batch_search.h"

#include <ATen/ops/full.h>
#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <map>
#include <string>
#include <utility>

#include "lib/core/error.h"
#include "lib/core/log.h"
#include "lib/core/text/text.h"
#include "lib/dist/device.h"
#include "lib/dist/out_of_memory.h"
#include "lib/recipe/ranks.h"
#include "lib/train/tune/memory_advice.h"
#include "lib/train/tune/step_costs.h"

namespace scaletrain::train {
namespace {

constexpr double kBytesOfMb = 1e6;

// Returns `recipe` for a trial on one rank with the full model: two micro-steps of `samples` if it
// accumulates, since the second one's gradients are added to the first one's.
recipe::Recipe trial_of(recipe::Recipe recipe, std::int64_t samples, int readers) {
  const std::int64_t micro_steps = *recipe.batch.global / (samples * readers);
  recipe.batch = {.per_device = samples,
                  .accumulate = std::min<std::int64_t>(micro_steps, 2),
                  .global = {},
                  .memory_mb = {},
                  .ramp = {}};
  recipe.parallel = {};
  recipe.data.val.reset();
  recipe.data.test.reset();
  recipe.data.extra.clear();
  recipe.parallel = {};  // a sharded model needs less memory than the trial
  return recipe;
}

core::WorkerEnv alone(core::WorkerEnv env) {
  env.rank = 0;
  env.world_size = 1;
  return env;
}

class Search {
 public:
  Search(Run& run, const core::WorkerEnv& env, const nn::Factories& models)
      : run_(run), env_(alone(env)), models_(models) {}

  bool fits(std::int64_t samples) {
    run_.beat.enter(core::Phase::kStarting);
    const std::optional<std::int64_t> bytes = bytes_of(samples);
    if (bytes) bytes_[samples] = *bytes;
    const std::optional<std::int64_t>& limit = run_.recipe.batch.memory_mb;
    return bytes &&
           (!limit || static_cast<double>(*bytes) <= static_cast<double>(*limit) * kBytesOfMb);
  }

  // "a step takes 1.2 MB, one of 16 samples 2.3 MB, and batch.memory_mb allows 2".
  std::string why(std::int64_t chosen) const {
    std::string text = "a step takes " + shown(chosen);
    const auto next = bytes_.upper_bound(chosen);
    if (next != bytes_.end()) {
      text += fmt::format(", one of {} {}", core::counted(next->first, "sample"),
                          megabytes(next->second));
    }
    if (run_.recipe.batch.memory_mb) {
      text += fmt::format(", and batch.memory_mb allows {}", *run_.recipe.batch.memory_mb);
    }
    return text;
  }
  std::string shown(std::int64_t samples) const {
    const auto found = bytes_.find(samples);
    return found == bytes_.end() ? "more than there is" : megabytes(found->second);
  }

 private:
  // nullopt: memory ran out.
  std::optional<std::int64_t> bytes_of(std::int64_t samples) {
    const int readers = run_.mesh->plan().readers();
    std::optional<std::int64_t> bytes;
    try {
      bytes = measure_first_steps(trial_of(run_.recipe, samples, readers), env_, models_).total();
    } catch (const std::exception& error) {
      if (!dist::is_out_of_memory(error)) throw;
    }
    dist::release_cached_memory(run_.group->device());
    return bytes;
  }

  Run& run_;
  core::WorkerEnv env_;
  const nn::Factories& models_;
  std::map<std::int64_t, std::int64_t> bytes_;  // peak bytes of a step, by samples
};

std::int64_t smallest_of_all(dist::Group& group, std::int64_t own) {
  const at::Tensor least = at::full({}, -static_cast<double>(own),
                                    at::TensorOptions(at::kDouble).device(group.device()));
  group.all_reduce_max(least, "samples that fit").wait();
  return -static_cast<std::int64_t>(*group.to_host(least).const_data_ptr<double>());
}

}  // namespace

std::optional<std::int64_t> largest_that_fits(const std::vector<std::int64_t>& candidates,
                                              const std::function<bool(std::int64_t)>& fits) {
  auto good = candidates.begin(), end = candidates.end();  // largest that fits; first too large
  if (good == end || !fits(*good)) return std::nullopt;
  bool doubles = true;
  while (good + 1 != end) {
    const auto twice = std::lower_bound(good + 1, end - 1, 2 * *good);
    const auto next = doubles ? twice : good + (end - good) / 2;
    if (fits(*next)) {
      good = next;
    } else {
      end = next;
      doubles = false;
    }
  }
  return *good;
}

void choose_per_device(Run& run, const core::WorkerEnv& env, const nn::Factories& models) {
  recipe::Batch& batch = run.recipe.batch;
  const std::int64_t before = std::exchange(run.state.auto_per_device, 0);
  if (!batch.is_automatic()) return;
  const int readers = run.mesh->plan().readers();
  recipe::divide_batch(batch, readers);
  const std::vector<std::int64_t> candidates = recipe::batch_candidates(run.recipe, readers);
  if (std::find(candidates.begin(), candidates.end(), before) != candidates.end()) {
    batch.per_device = run.state.auto_per_device = before;
    return;
  }
  if (run.group->device().is_cpu() && !batch.memory_mb) {
    throw core::RecipeError("/batch/per_device", recipe::kNoEndOnCpu, recipe::kEndOnCpu);
  }
  Search search(run, env, models);
  const auto own =
      largest_that_fits(candidates, [&](std::int64_t samples) { return search.fits(samples); });
  const std::int64_t chosen = smallest_of_all(*run.group, own.value_or(0));
  if (chosen == 0) {
    throw core::OutOfMemoryError(
        "/batch/per_device",
        fmt::format("not even a step of {} at a time fits: it takes {}",
                    core::counted(candidates.front(), "sample"), search.shown(candidates.front())),
        dist::kLessMemory);
  }
  batch.per_device = run.state.auto_per_device = chosen;
  if (run.group->rank() != 0) return;
  core::log("batch.per_device is {} of {}: {}", chosen, candidates.back(), search.why(chosen));
}

}  // namespace scaletrain::train
