#include "lib/train/rules/spike_bounds.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace scaletrain::train {
namespace {

constexpr double kDeviations = 1.4826;  // MAD to standard deviation of a normal distribution
constexpr double kLeastWidth = 0.05;
constexpr double kLossScale = 0.1, kNormScale = 1e-6;  // losses near 0 vary by orders of magnitude

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

}  // namespace

double robust_bound(const std::vector<double>& values, double spike, double linear_below) {
  std::vector<double> scaled;
  scaled.reserve(values.size());
  for (const double value : values) scaled.push_back(std::asinh(value / linear_below));
  const double middle = median(scaled);
  for (double& value : scaled) value = std::abs(value - middle);
  const double width = std::max(kDeviations * median(std::move(scaled)), kLeastWidth);
  return linear_below * std::sinh(middle + spike * width);
}

SpikeBounds spike_bounds(const std::vector<format::StepMeasure>& measures, std::int64_t step,
                         std::int64_t window, double spike) {
  std::vector<double> losses, norms;
  for (auto one = measures.rbegin(); one != measures.rend() && std::ssize(losses) < window; ++one) {
    if (one->step >= step - 1) continue;
    losses.push_back(one->loss);
    norms.push_back(one->grad_norm);
  }
  if (losses.empty() || 2 * std::ssize(losses) < window) return {};
  return {.loss = robust_bound(losses, spike, kLossScale),
          .grad_norm = robust_bound(norms, spike, kNormScale)};
}

}  // namespace scaletrain::train
