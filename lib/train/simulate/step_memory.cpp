#include "lib/train/simulate/step_memory.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "lib/train/run/state_shards.h"
#include "lib/train/simulate/fake_rank.h"
#include "lib/units/allocation_recorder.h"

namespace scaletrain::train {
namespace {

// With fewer samples convolutions choose other kernels.
constexpr std::int64_t kFewest = 4;

// Samples of the smaller micro-batch of two; the larger one has twice as many. Kernels for large
// products must run in both, so it is no fixed number.
std::int64_t small_batch(std::int64_t samples) { return std::max(kFewest, samples / 8); }

// Keeps `recipe` a recipe that accumulates gradients, with as few micro-batches as do.
recipe::Recipe shortened(recipe::Recipe recipe, const dist::FakeJob& job) {
  const core::MeshPlan plan(job.world_size, recipe.parallel.mesh());
  const recipe::BatchPlan batch = recipe::divide_batch(recipe.batch, plan.readers());
  recipe.batch.global.reset();
  recipe.batch.ramp.reset();
  recipe.data.resize_ramp.reset();
  const std::int64_t fewest = recipe.parallel.pipeline > 1 ? batch.accumulate : 2;
  recipe.batch.accumulate = std::min(batch.accumulate, fewest);
  return recipe;
}

class Measurement {
 public:
  Measurement(const recipe::Recipe& recipe, const dist::FakeJob& job, const nn::Factories& models)
      : recorder_(std::make_shared<units::AllocationRecorder>(at::kCPU)),
        watch_(recorder_),
        rank_(shortened(recipe, job), std::make_shared<dist::FakeNetwork>(job), models) {}

  StepMemoryUse predict(std::int64_t samples) {
    const std::int64_t few = small_batch(samples);
    if (samples <= 2 * few) return measure(samples);
    const core::AllocationTrace small = record(few), large = record(2 * few);
    const auto peak = core::replayed_peak(small, large, samples);
    return peak ? use_of(*peak, /*was_replayed=*/true) : measure(samples);
  }

  StepMemoryUse measure(std::int64_t samples) {
    const core::AllocationTrace whole = record(samples);
    return use_of(*core::replayed_peak(whole, whole, samples), /*was_replayed=*/false);
  }

  void end() {
    rank_.run().engine->settle();
    rank_.run().mesh->end("the measurement");
  }

 private:
  static StepMemoryUse use_of(const std::vector<std::int64_t>& peak, bool was_replayed) {
    StepMemoryUse result{.peak = {}, .was_replayed = was_replayed};
    std::copy(peak.begin(), peak.end(), result.peak.bytes.begin());
    return result;
  }

  // Returns the allocations of a step after others of its size.
  core::AllocationTrace record(std::int64_t samples) {
    constexpr int kFirstSteps = 2;
    rank_.run().batch.per_device = samples;
    for (int i = 0; i < kFirstSteps; ++i) rank_.take_step(step_++);
    attribute_state(rank_.run(), *recorder_);
    recorder_->start();
    rank_.take_step(step_++);
    return recorder_->stop(samples);
  }

  std::shared_ptr<units::AllocationRecorder> recorder_;
  units::MemoryWatch watch_;
  FakeRank rank_;
  std::int64_t step_ = 0;
};

}  // namespace

StepMemoryUse predict_step_memory(const recipe::Recipe& recipe, const dist::FakeJob& job,
                                  const nn::Factories& models) {
  Measurement measurement(recipe, job, models);
  const StepMemoryUse result = measurement.predict(recipe.batch.per_device);
  measurement.end();
  return result;
}

StepMemoryUse measure_step_memory(const recipe::Recipe& recipe, const dist::FakeJob& job,
                                  const nn::Factories& models) {
  Measurement measurement(recipe, job, models);
  const StepMemoryUse result = measurement.measure(recipe.batch.per_device);
  measurement.end();
  return result;
}

}  // namespace scaletrain::train
