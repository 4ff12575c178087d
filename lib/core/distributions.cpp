#include "lib/core/distributions.h"

#include <cmath>
#include <numbers>

namespace scaletrain::core {
namespace {

// The logarithm of a gamma draw of this shape: small shapes give numbers too small for a double.
double log_gamma_draw(Philox& draws, double shape) {
  if (shape < 1) {  // section 6 of the paper
    const double log_uniform = std::log(1.0 - draws.uniform());
    return log_gamma_draw(draws, shape + 1) + log_uniform / shape;
  }
  const double d = shape - 1.0 / 3.0;
  const double c = 1.0 / std::sqrt(9.0 * d);
  for (;;) {
    const double x = normal(draws);
    const double v = std::pow(1.0 + c * x, 3);
    if (v <= 0) continue;
    const double u = 1.0 - draws.uniform();
    if (std::log(u) < 0.5 * x * x + d - d * v + d * std::log(v)) return std::log(d * v);
  }
}

}  // namespace

double uniform(Philox& draws, double low, double high) {
  return low + (high - low) * draws.uniform();
}

bool happens(Philox& draws, double probability) { return draws.uniform() < probability; }

double normal(Philox& draws) {
  const double radius = std::sqrt(-2.0 * std::log(1.0 - draws.uniform()));
  return radius * std::cos(2.0 * std::numbers::pi * draws.uniform());
}

double symmetric_beta(Philox& draws, double alpha) {
  const double one = log_gamma_draw(draws, alpha);
  const double other = log_gamma_draw(draws, alpha);
  return 1.0 / (1.0 + std::exp(other - one));
}

}  // namespace scaletrain::core
