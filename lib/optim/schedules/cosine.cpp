// Half a cosine from the peak to peak * final_factor (Loshchilov and Hutter, SGDR, 2017, equation
// 5, without restarts).
#include <cmath>
#include <numbers>

#include "lib/optim/decay.h"

namespace scaletrain::optim {

Decay make_cosine(const recipe::Component& config, DecaySpan span) {
  const double last = config.number("final_factor");
  return [last, span](std::int64_t step) {
    return last + (1 - last) * (1 + std::cos(std::numbers::pi * progress(step, span))) / 2;
  };
}

}  // namespace scaletrain::optim
