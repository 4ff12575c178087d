// (1 - progress) ^ power from the peak to peak * final_factor; power 1 is a straight line.
#include <cmath>

#include "lib/optim/decay.h"

namespace scaletrain::optim {

Decay make_polynomial(const recipe::Component& config, DecaySpan span) {
  const double power = config.number("power");
  const double last = config.number("final_factor");
  return [power, last, span](std::int64_t step) {
    return last + (1 - last) * std::pow(1 - progress(step, span), power);
  };
}

}  // namespace scaletrain::optim
