#include "lib/train/loop/means.h"

#include <algorithm>

#include "lib/train/model/mean_plan.h"

namespace scaletrain::train {

void count_updates(Run& run, std::int64_t step) {
  const auto is_due = [step](const auto& mean) { return mean->is_due(step); };
  const auto due = std::find_if(run.means.begin(), run.means.end(), is_due);
  if (due == run.means.end()) return;
  // All EMAs are updated together; a run has either EMA or SWA.
  ++((*due)->plan().decay ? run.state.ema_updates : run.state.swa_updates);
}

const optim::Mean* final_mean(const Run& run) {
  if (run.means.empty() || !run.recipe.checkpoint.best.weights.empty()) return nullptr;
  const optim::MeanPlan& plan = run.means.front()->plan();
  return !plan.decay && has_begun(plan, run.state) ? run.means.front().get() : nullptr;
}

}  // namespace scaletrain::train
