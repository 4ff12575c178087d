#include "lib/train/simulate/step_memory.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "lib/train/run/held.h"
#include "lib/train/simulate/fake_rank.h"
#include "lib/units/allocation_recorder.h"

namespace scaletrain::train {
namespace {

// With fewer samples than 4 kernels of convolutions take other ways.
constexpr std::int64_t kSmall = 4, kLarge = 8;

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

  StepMemoryUse run(std::int64_t samples) {
    const bool is_large = samples > kLarge;
    const core::AllocationTrace small = record(is_large ? kSmall : samples);
    const core::AllocationTrace large = is_large ? record(kLarge) : small;
    std::optional<std::vector<std::int64_t>> peak = core::replayed_peak(small, large, samples);
    StepMemoryUse result{.peak = {}, .was_replayed = is_large && peak.has_value()};
    if (!peak) {
      const core::AllocationTrace whole = record(samples);
      peak = core::replayed_peak(whole, whole, samples);
    }
    std::copy(peak->begin(), peak->end(), result.peak.bytes.begin());
    return result;
  }

  void end() {
    rank_.run().engine->settle();
    rank_.run().mesh->end("the measurement");
  }

 private:
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
  const std::int64_t samples = recipe.batch.per_device;
  Measurement measurement(recipe, job, models);
  const StepMemoryUse result = measurement.run(samples);
  measurement.end();
  return result;
}

}  // namespace scaletrain::train
