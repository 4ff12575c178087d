// Engine::run() for a rank of a pipeline: connects the step's micro-batches and the units of the
// rank's stages to the pipeline executor.
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <string>
#include <unordered_map>
#include <utility>

#include "lib/core/process/time_ledger.h"
#include "lib/engine/engine.h"
#include "lib/engine/pipeline.h"
#include "lib/units/memory_meter.h"

namespace scaletrain::engine {

using units::MemoryKind;
using units::MemoryPhase;

void Engine::run_pipeline(std::int64_t step, MicroBatches& batches, const at::Tensor& weight,
                          const std::function<void(const at::Tensor&)>& before_last_backward,
                          bool again) {
  const Stages& stages = parts_.pipeline->stages();
  at::Tensor total =
      at::zeros({}, at::TensorOptions(at::kDouble).device(parts_.mesh.world().device()));
  parts_.placement.begin_step(step);
  parts_.placement.zero_grad();
  bool is_last_backward = false;
  parts_.pipeline->run(
      {.micro_batches = batches.count(),
       .next = [&] { return next_micro_batch(batches); },
       .forward =
           [&](int stage, std::int64_t micro, const task::Example& example, units::Flow input) {
             const std::int64_t block = micro * parts_.mesh.plan().readers() + parts_.mesh.reader();
             const bool is_last = stage + 1 == stages.count();
             Losses losses;
             units::Flow flow = run_units(stages.begin(stage), stages.end(stage),
                                          {.seed = seed_, .step = step, .block = block}, example,
                                          again, std::move(input), is_last ? &losses : nullptr);
             if (!is_last) return flow;
             total.add_(losses.task.detach());
             return units::Flow{parts_.precision.scale(losses.all * weight)};
           },
       .backward =
           [&](const units::Flow& roots, const units::Flow& gradients, bool keeps_weights) {
             const MemoryPhase phase(MemoryKind::kGradients);
             const core::TimeScope time(core::TimeRow::kBackward);
             if (keeps_weights) {
               parts_.placement.begin_inputs();
             } else {
               parts_.placement.begin_micro_step(is_last_backward);
             }
             parts_.placement.prepare_backward(roots.empty() ? at::Tensor() : roots.front());
             walk_.begin_backward();
             if (!roots.empty()) backward(roots, gradients);
             walk_.end_backward();
           },
       .weights =
           [&](const std::function<void()>& compute, bool last) {
             const MemoryPhase phase(MemoryKind::kGradients);
             const core::TimeScope time(core::TimeRow::kBackward);
             parts_.placement.begin_weights(last);
             compute();
             parts_.placement.end_weights();
           },
       .before_last_backward =
           [&] {
             is_last_backward = true;
             before_last_backward(total);
           }});
  const core::TimeScope time(core::TimeRow::kBackward);
  // Runs before gradient compression, so that all stages of a tied tensor round equally.
  std::unordered_map<std::string, at::Tensor> by_name;
  for (const units::NamedParameter& parameter : owned()) {
    by_name.emplace(parameter.name, parameter.tensor);
  }
  parts_.pipeline->sum_tied([&](const std::string& name) {
    const auto found = by_name.find(name);
    if (found == by_name.end()) return at::Tensor();
    at::Tensor& gradient = found->second.mutable_grad();
    if (!gradient.defined()) gradient = at::zeros_like(found->second);  // another stage has one
    return gradient;
  });
  parts_.placement.exchange_rest();
}

}  // namespace scaletrain::engine
