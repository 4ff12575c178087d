#include "launcher/commands/lr_find/range_curve.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

namespace scaletrain::launcher {
namespace {

constexpr double kDiverged = 4;   // times the lowest smoothed loss
constexpr double kClearFall = 6;  // standard errors
constexpr double kShareOfSteps = 0.03, kReach = 3;

std::size_t steps_within(double width) {
  return static_cast<std::size_t>(std::ceil(kReach * width));
}

// Mean of the losses around step `at`: those before it and at most `ahead` steps after it.
double gaussian_mean(const std::vector<RangePoint>& points, std::size_t at, double width,
                     std::size_t ahead) {
  const std::size_t reach = steps_within(width);
  const std::size_t end = std::min(points.size(), at + ahead + 1);
  double sum = 0, weights = 0;
  for (std::size_t i = at > reach ? at - reach : 0; i < end; ++i) {
    const double distance = (static_cast<double>(i) - static_cast<double>(at)) / width;
    const double weight = std::exp(-distance * distance / 2);
    sum += weight * points[i].loss;
    weights += weight;
  }
  return sum / weights;
}

// Returns the standard error of the smoothed losses before index `end`: the deviation of the losses
// from them, divided by the square root of the effective number of losses in a Gaussian mean.
double standard_error(const std::vector<RangePoint>& points, const std::vector<double>& smoothed,
                      std::size_t end, double width) {
  double squares = 0;
  for (std::size_t i = 0; i < end; ++i) {
    const double rest = points[i].loss - smoothed[i];
    squares += rest * rest;
  }
  const double averaged = 2 * std::sqrt(std::numbers::pi) * width;
  return std::sqrt(squares / static_cast<double>(end) / averaged);
}

double highest_until(const std::vector<double>& smoothed, std::size_t last) {
  return *std::max_element(smoothed.begin(),
                           smoothed.begin() + static_cast<std::ptrdiff_t>(last) + 1);
}

}  // namespace

double RateRange::at(std::int64_t step) const {
  if (steps < 2) return to;
  const double share = static_cast<double>(step - 1) / static_cast<double>(steps - 1);
  return from * std::pow(to / from, share);
}

double RateRange::warmup_from() const { return at(0) / to; }

std::vector<double> smoothed_loss(const std::vector<RangePoint>& points, double width) {
  std::vector<double> result;
  result.reserve(points.size());
  for (std::size_t i = 0; i < points.size(); ++i) {
    result.push_back(gaussian_mean(points, i, width, steps_within(width)));
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

std::optional<std::size_t> steps_until_diverged(const std::vector<RangePoint>& points,
                                                double width) {
  double best = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < points.size(); ++i) {
    const double mean = gaussian_mean(points, i, width, 0);
    best = std::min(best, mean);
    if (best > 0 && mean > kDiverged * best) return i + 1;
  }
  return std::nullopt;
}

std::optional<RateSuggestion> suggest_rate(const std::vector<RangePoint>& points,
                                           const std::vector<double>& smoothed, double width) {
  if (smoothed.empty()) return std::nullopt;
  const std::size_t best = lowest(smoothed);
  const double fall = highest_until(smoothed, best) - smoothed[best];
  const double error = standard_error(points, smoothed, best + 1, width);
  if (fall < kClearFall * error) return std::nullopt;
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
  const double highest = highest_until(smoothed, best);
  const double spread = std::max(highest - smoothed[best], std::abs(smoothed[best]));
  for (std::size_t i = 0; i < smoothed.size(); ++i) {
    if (i > best && smoothed[i] > highest + kRoom * spread) break;
    shown.push_back({.lr = points[i].lr, .loss = smoothed[i]});
  }
  return shown;
}

}  // namespace scaletrain::launcher
