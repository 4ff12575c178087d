// Multiplied by gamma every every_epochs epochs, counted from the end of the warmup.
#include <cmath>

#include "lib/optim/decay.h"
#include "lib/optim/schedule.h"

namespace scaletrain::optim {

Decay make_step(const recipe::Component& config, DecaySpan span) {
  const double gamma = config.number("gamma");
  const recipe::Duration every{recipe::Duration::Unit::kEpochs, config.number("every_epochs")};
  const std::int64_t interval =
      std::max<std::int64_t>(1, duration_steps(every, span.steps_per_epoch));
  return [gamma, interval](std::int64_t step) {
    const std::int64_t drops = step / interval;
    return std::pow(gamma, static_cast<double>(drops));
  };
}

}  // namespace scaletrain::optim
