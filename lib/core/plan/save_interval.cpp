#include "lib/core/plan/save_interval.h"

#include <cmath>

namespace scaletrain::core {

double best_interval(double cost_s, double mtbf_s) {
  if (cost_s >= 2 * mtbf_s) return mtbf_s;
  const double ratio = cost_s / (2 * mtbf_s);
  return std::sqrt(2 * cost_s * mtbf_s) * (1 + std::sqrt(ratio) / 3 + ratio / 9) - cost_s;
}

}  // namespace scaletrain::core
