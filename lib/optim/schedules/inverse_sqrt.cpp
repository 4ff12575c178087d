// Inverse square root decay: sqrt(timescale / (timescale + steps since the warmup)), as in Hugging
// Face's get_inverse_sqrt_schedule and the original Transformer (Vaswani et al., Attention Is All
// You Need, 2017, equation 3, where the timescale is the warmup).
#include <cmath>

#include "lib/optim/decay.h"

namespace scaletrain::optim {
Decay make_inverse_sqrt(const recipe::Component& config, DecaySpan span) {
  const std::int64_t given = config.integer("timescale");
  const std::int64_t standard = span.warmup_steps > 0 ? span.warmup_steps : 10000;
  const auto timescale = static_cast<double>(given > 0 ? given : standard);
  return [timescale](std::int64_t step) {
    return std::sqrt(timescale / (timescale + static_cast<double>(step)));
  };
}

}  // namespace scaletrain::optim
