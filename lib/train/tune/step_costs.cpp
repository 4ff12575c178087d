#include "lib/train/tune/step_costs.h"

#include <ATen/ops/zeros.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "lib/core/clock.h"
#include "lib/dist/device.h"
#include "lib/train/build/build.h"
#include "lib/train/run/state_shards.h"

namespace scaletrain::train {
namespace {

constexpr std::int64_t kFirstSteps = 3;  // warmup: allocate persistent memory, choose kernels
constexpr std::int64_t kMeasuredSteps = 2;

// With images and batches as large as they become.
recipe::Recipe grown(recipe::Recipe recipe) {
  recipe.data.resize_ramp.reset();
  recipe.batch.ramp.reset();
  return recipe;
}

// Takes training steps and nothing else.
class Stepper {
 public:
  Stepper(recipe::Recipe recipe, const core::WorkerEnv& env, const nn::Factories& models,
          const BeforeData& before_data = nullptr)
      : run_(build_run(grown(std::move(recipe)), env, std::nullopt, {}, models, before_data)),
        steps_(step_parts(*run_), /*late=*/!run_->group->device().is_cpu()) {}

  Run& run() { return *run_; }

  void take(std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) {
      steps_.run(step_++, run_->lr(), /*trained_s=*/0);
      steps_.next();
    }
  }
  void drain() {
    while (steps_.drain()) {
    }
  }
  void end() {
    drain();
    run_->mesh->end("the measurement");
  }

 private:
  std::unique_ptr<Run> run_;
  StepRunner steps_;
  std::int64_t step_ = 0;
};

std::shared_ptr<units::MemoryMeter> meter_for(const recipe::Recipe& recipe,
                                              const core::WorkerEnv& env) {
  const at::Device device =
      dist::choose_device(recipe.device, {.rank = env.local_rank, .ranks = env.local_world_size});
  return std::make_shared<units::MemoryMeter>(device.type());
}

// Returns the memory use of the rank with the highest sum.
units::MemoryUse highest(dist::Group& group, const units::MemoryUse& own) {
  constexpr auto kKindCount = static_cast<std::int64_t>(units::kMemoryKinds);
  const at::Tensor all = at::zeros({group.world_size(), kKindCount},
                                   at::TensorOptions(at::kDouble).device(group.device()));
  for (std::int64_t kind = 0; kind < kKindCount; ++kind) {
    all[group.rank()][kind].fill_(
        static_cast<double>(own.bytes.at(static_cast<std::size_t>(kind))));
  }
  group.all_reduce_sum(all, "memory").wait();
  const at::Tensor host = group.to_host(all);
  const auto* const numbers = host.const_data_ptr<double>();
  std::optional<units::MemoryUse> result;
  for (int rank = 0; rank < group.world_size(); ++rank) {
    units::MemoryUse one;
    std::transform(numbers + rank * kKindCount, numbers + (rank + 1) * kKindCount,
                   one.bytes.begin(),
                   [](double bytes) { return static_cast<std::int64_t>(bytes); });
    if (!result || one.total() > result->total()) result = one;
  }
  return *result;
}

}  // namespace

StepCost measure_memory(recipe::Recipe recipe, const core::WorkerEnv& env,
                        const nn::Factories& models, const BeforeData& before_data) {
  const std::shared_ptr<units::MemoryMeter> meter = meter_for(recipe, env);
  const units::MemoryWatch watch(meter);
  Stepper stepper(std::move(recipe), env, models, before_data);
  stepper.take(kFirstSteps);
  stepper.drain();
  attribute_state(stepper.run(), *meter);
  meter->restart_peaks();
  stepper.take(kMeasuredSteps);
  stepper.drain();
  const StepCost result{.memory = highest(*stepper.run().group, meter->peak()),
                        .auto_per_device = stepper.run().state.auto_per_device};
  stepper.end();
  return result;
}

units::MemoryUse measure_first_steps(recipe::Recipe recipe, const core::WorkerEnv& env,
                                     const nn::Factories& models) {
  constexpr std::int64_t kSteps = 2;  // the second one finds all that the first one leaves
  const std::shared_ptr<units::MemoryMeter> meter = meter_for(recipe, env);
  const units::MemoryWatch watch(meter);
  Stepper stepper(std::move(recipe), env, models);
  attribute_state(stepper.run(), *meter);
  meter->restart_peaks();
  stepper.take(kSteps);
  stepper.drain();
  return meter->peak();
}

StepCost measure_speed(recipe::Recipe recipe, const core::WorkerEnv& env, std::int64_t steps,
                       const nn::Factories& models, const BeforeData& before_data) {
  Stepper stepper(std::move(recipe), env, models, before_data);
  stepper.take(kFirstSteps);
  std::vector<double> seconds;
  for (std::int64_t i = 0; i < steps; ++i) {
    const core::SteadyTime start = core::now();
    stepper.take(1);
    seconds.push_back(core::seconds_since(start));
  }
  stepper.end();
  const auto middle = seconds.begin() + static_cast<std::ptrdiff_t>(seconds.size() / 2);
  std::nth_element(seconds.begin(), middle, seconds.end());
  return {.memory = {}, .seconds = *middle, .auto_per_device = stepper.run().state.auto_per_device};
}

}  // namespace scaletrain::train
