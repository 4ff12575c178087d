// Multiplied by gamma at each milestone, an epoch counted from the beginning of training.
#include <algorithm>
#include <cmath>
#include <vector>

#include "lib/optim/decay.h"
#include "lib/optim/schedule.h"

namespace scaletrain::optim {

Decay make_multi_step(const recipe::Component& config, DecaySpan span) {
  const double gamma = config.number("gamma");
  std::vector<std::int64_t> drops;  // steps after the warmup
  for (const double epoch : config.numbers("milestones")) {
    const recipe::Duration until{recipe::Duration::Unit::kEpochs, epoch};
    drops.push_back(duration_steps(until, span.steps_per_epoch) - span.warmup_steps);
  }
  return [gamma, drops](std::int64_t step) {
    const auto passed =
        std::count_if(drops.begin(), drops.end(), [step](std::int64_t at) { return at <= step; });
    return std::pow(gamma, static_cast<double>(passed));
  };
}

}  // namespace scaletrain::optim
