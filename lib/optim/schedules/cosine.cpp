// cosine: half a cosine from the peak to peak * final_factor (Loshchilov and Hutter, SGDR, 2017,
// equation 5). cosine_restarts: one after the other, each cycle_factor times as long as the last,
// and from a peak cycle_decay times as high.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "lib/optim/decay.h"

namespace scaletrain::optim {
namespace {

// 1 at 0, 0 at 1.
double half_cosine(double progress) { return (1 + std::cos(std::numbers::pi * progress)) / 2; }

}  // namespace

Decay make_cosine(const recipe::Component& config, DecaySpan span) {
  const double last = config.number("final_factor");
  return [last, span](std::int64_t step) {
    return last + (1 - last) * half_cosine(progress(step, span));
  };
}

Decay make_cosine_restarts(const recipe::Component& config, DecaySpan span) {
  const double last = config.number("final_factor"), factor = config.number("cycle_factor"),
               decay = config.number("cycle_decay");
  const double first =
      std::max(1.0, config.number("cycle_epochs") * static_cast<double>(span.steps_per_epoch));
  return [last, factor, decay, first](std::int64_t step) {
    double length = first, peak = 1, begin = 0;
    const auto now = static_cast<double>(step);
    while (now >= begin + length) {
      begin += length;
      length *= factor;
      peak *= decay;
    }
    return last + std::max(0.0, peak - last) * half_cosine((now - begin) / length);
  };
}

}  // namespace scaletrain::optim
