// Exponential decay: the learning rate is multiplied by gamma per epoch, gradually in each step
// (torch.optim's ExponentialLR).
#include <algorithm>
#include <cmath>

#include "lib/optim/decay.h"

namespace scaletrain::optim {
Decay make_exponential(const recipe::Component& config, DecaySpan span) {
  const double gamma = config.number("gamma");
  const auto epoch = static_cast<double>(std::max<std::int64_t>(1, span.steps_per_epoch));
  return [gamma, epoch](std::int64_t step) {
    return std::pow(gamma, static_cast<double>(step) / epoch);
  };
}

}  // namespace scaletrain::optim
