#include "launcher/commands/lr_find/range_curve.h"

#include <algorithm>
#include <cmath>

namespace scaletrain::launcher {
namespace {

constexpr double kDiverged = 4;  // times the lowest smoothed loss
constexpr double kShareOfSteps = 0.03, kReach = 3;

}  // namespace

double RateRange::at(std::int64_t step) const {
  if (steps < 2) return to;
  const double share = static_cast<double>(step - 1) / static_cast<double>(steps - 1);
  return from * std::pow(to / from, share);
}

double RateRange::warmup_from() const { return at(0) / to; }

std::vector<double> smoothed_loss(const std::vector<RangePoint>& points, double width) {
  const auto count = static_cast<std::ptrdiff_t>(points.size());
  const auto reach = static_cast<std::ptrdiff_t>(std::ceil(kReach * width));
  std::vector<double> result;
  result.reserve(points.size());
  for (std::ptrdiff_t i = 0; i < count; ++i) {
    double sum = 0, weights = 0;
    const std::ptrdiff_t end = std::min(count, i + reach + 1);
    for (std::ptrdiff_t k = std::max<std::ptrdiff_t>(0, i - reach); k < end; ++k) {
      const double distance = static_cast<double>(k - i) / width;
      const double weight = std::exp(-distance * distance / 2);
      sum += weight * points[static_cast<std::size_t>(k)].loss;
      weights += weight;
    }
    result.push_back(sum / weights);
  }
  return result;
}

double smoothing_width(std::int64_t steps) {
  return std::max(1.0, kShareOfSteps * static_cast<double>(steps));
}

std::size_t lowest(const std::vector<double>& smoothed) {
  return static_cast<std::size_t>(std::min_element(smoothed.begin(), smoothed.end()) -
                                  smoothed.begin());
}

bool has_diverged(const std::vector<double>& smoothed) {
  if (smoothed.empty()) return false;
  const double best = smoothed[lowest(smoothed)];
  return best > 0 && smoothed.back() > kDiverged * best;
}

std::optional<RateSuggestion> suggest_rate(const std::vector<RangePoint>& points,
                                           const std::vector<double>& smoothed) {
  if (smoothed.empty()) return std::nullopt;
  const std::size_t best = lowest(smoothed);
  std::size_t steepest = 0;
  double slope = 0;
  for (std::size_t i = 1; i < best; ++i) {
    const double here = (smoothed[i + 1] - smoothed[i - 1]) / 2;
    if (here >= slope) continue;
    slope = here;
    steepest = i;
  }
  if (steepest == 0) return std::nullopt;
  return RateSuggestion{.steepest = points[steepest].lr, .best = points[best].lr};
}

std::vector<RangePoint> shown_points(const std::vector<RangePoint>& points,
                                     const std::vector<double>& smoothed) {
  constexpr double kRoom = 0.25;
  std::vector<RangePoint> shown;
  if (smoothed.empty()) return shown;
  const std::size_t best = lowest(smoothed);
  const double highest =
      *std::max_element(smoothed.begin(), smoothed.begin() + static_cast<std::ptrdiff_t>(best) + 1);
  const double spread = std::max(highest - smoothed[best], std::abs(smoothed[best]));
  for (std::size_t i = 0; i < smoothed.size(); ++i) {
    if (i > best && smoothed[i] > highest + kRoom * spread) break;
    shown.push_back({.lr = points[i].lr, .loss = smoothed[i]});
  }
  return shown;
}

}  // namespace scaletrain::launcher
