#include "lib/optim/swa_lr.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace scaletrain::optim {

double swa_lr(const SwaLr& plan, double from, std::int64_t step) {
  if (step < plan.start) return from;
  const auto since = static_cast<double>(step - plan.start);
  const double way =
      plan.anneal > 0 ? std::min(1.0, since / static_cast<double>(plan.anneal)) : 1.0;
  const double share = plan.is_linear ? way : (1 - std::cos(std::numbers::pi * way)) / 2;
  return plan.lr * share + from * (1 - share);
}

}  // namespace scaletrain::optim
