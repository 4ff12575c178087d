// Search for the first unit whose output is not finite: a part of Engine.
#include <ATen/core/grad_mode.h>
#include <ATen/ops/isfinite.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "lib/engine/engine.h"
#include "lib/engine/training_context.h"

namespace scaletrain::engine {
namespace {

bool is_finite(const at::Tensor& tensor) {
  return !tensor.defined() || !tensor.is_floating_point() ||
         at::isfinite(tensor).all().item<bool>();
}

}  // namespace

std::string Engine::first_not_finite(std::int64_t step, std::int64_t micro_step,
                                     const task::Example& example) {
  if (parts_.pipeline != nullptr) return "";
  const at::NoGradGuard no_grad;
  const std::int64_t block = micro_step * parts_.mesh.plan().readers() + parts_.mesh.reader();
  const Draws draws{.seed = seed_, .step = step, .block = block};
  std::string found = is_finite(example.input) ? "" : "input";
  parts_.precision.forward([&] {
    units::Context context = training_context(example.context, parts_.mesh.data());
    context.again = true;  // skips the updates of counters
    const std::size_t last = units_.size() - 1;
    units::Flow flow{example.input};
    // Every rank runs all units, which may use collectives, also when it has found one.
    for (std::size_t unit = 0; unit < (chunk_ > 0 ? last : units_.size()); ++unit) {
      flow = walk_.run(unit, parallel::Pass::kEvaluation, [&] {
        reseed(draws, unit);
        return units_[unit].run(std::move(flow), context);
      });
      const bool sound = std::ranges::all_of(flow, is_finite);
      if (found.empty() && !sound) found = units_[unit].name;
    }
    if (chunk_ > 0) return flow.front();
    const at::Tensor loss = parts_.task.loss_sum(flow.front(), example);
    if (found.empty() && !is_finite(loss)) found = "loss";
    return loss;
  });
  return found;
}

}  // namespace scaletrain::engine
