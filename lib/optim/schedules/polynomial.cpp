// (1 - progress) ^ power from the peak to peak * final_factor; linear: power 1.
#include <cmath>

#include "lib/optim/decay.h"

namespace scaletrain::optim {
namespace {

Decay power_decay(double power, double last, DecaySpan span) {
  return [power, last, span](std::int64_t step) {
    return last + (1 - last) * std::pow(1 - progress(step, span), power);
  };
}

}  // namespace

Decay make_polynomial(const recipe::Component& config, DecaySpan span) {
  return power_decay(config.number("power"), config.number("final_factor"), span);
}

Decay make_linear(const recipe::Component& config, DecaySpan span) {
  return power_decay(1, config.number("final_factor"), span);
}

}  // namespace scaletrain::optim
