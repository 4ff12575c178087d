// Learning rate range test (L. N. Smith, Cyclical Learning Rates for Training Neural Networks,
// 2015): the loss over an exponentially growing learning rate, and the rate that it suggests.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace scaletrain::launcher {

// Learning rates of the test: `from` at step 1, `to` at step `steps`, an equal factor each step.
struct RateRange {
  double from = 1e-7, to = 1;
  std::int64_t steps = 100;

  double at(std::int64_t step) const;
  // Initial learning rate of an exponential warmup of `steps` steps that takes these rates, as a
  // share of `to` (schedule.warmup_from). The warmup's first step is one factor above it.
  double warmup_from() const;
};

struct RangePoint {
  double lr = 0, loss = 0;  // one step
};

// Smooths the losses over neighbouring steps with Gaussian weights. The standard deviation is
// `width` steps; steps beyond three of them have no weight. At the ends the weights are normalized
// over the steps that exist.
std::vector<double> smoothed_loss(const std::vector<RangePoint>& points, double width);
// Standard deviation for a test of `steps` steps: 3 % of them, at least 1.
double smoothing_width(std::int64_t steps);

// Index of the lowest smoothed loss; `smoothed` is not empty.
std::size_t lowest(const std::vector<double>& smoothed);

// Number of steps until the loss has diverged: its mean over the past, with the same weights,
// exceeds 4 times the lowest such mean, the limit of fastai and PyTorch Lightning. Returns nullopt
// if it has not, and for losses below 0.
std::optional<std::size_t> steps_until_diverged(const std::vector<RangePoint>& points,
                                                double width);

struct RateSuggestion {
  double steepest = 0;  // learning rate of the steepest descent of the smoothed loss
  double best = 0;      // learning rate with the lowest smoothed loss
};

// Returns nullopt if the smoothed loss does not fall clearly: to its lowest value by at least 6
// standard errors. The slope is that over the logarithm of the learning rate, by central
// differences, before the lowest value. `smoothed` was made with `width`.
std::optional<RateSuggestion> suggest_rate(const std::vector<RangePoint>& points,
                                           const std::vector<double>& smoothed, double width);

// Returns the points with their smoothed losses, for a chart. It leaves out a diverging end, which
// would flatten the rest: losses after the lowest one that are far above all before it.
std::vector<RangePoint> shown_points(const std::vector<RangePoint>& points,
                                     const std::vector<double>& smoothed);

}  // namespace scaletrain::launcher
