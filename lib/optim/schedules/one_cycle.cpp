// One-cycle schedule: rises to the peak, then falls far below the initial value (Smith and Topin,
// Super-Convergence, 2018). The learning rates are those of PyTorch's OneCycleLR with two cosine
// phases; the momentum is constant.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "lib/optim/decay.h"

namespace scaletrain::optim {
Decay make_one_cycle(const recipe::Component& config, DecaySpan span) {
  const double first = 1 / config.number("div_factor");
  const double last = first / config.number("final_div_factor");
  const auto steps = static_cast<double>(span.steps);
  const double top = config.number("rise_share") * steps - 1;
  const double end = std::max(steps - 1, top + 1);
  return [first, last, top, end](std::int64_t step) {
    const auto now = static_cast<double>(step);
    const auto between = [](double from, double to, double share) {
      return to + (from - to) * (1 + std::cos(std::numbers::pi * share)) / 2;
    };
    if (now < top) return between(first, 1, now / top);
    return between(1, last, std::min(1.0, (now - top) / (end - top)));
  };
}

}  // namespace scaletrain::optim
