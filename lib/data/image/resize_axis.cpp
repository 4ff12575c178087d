#include "lib/data/image/resize_axis.h"

#include <algorithm>
#include <cmath>

namespace scaletrain::data {
namespace {

double triangle(double x) { return std::max(0.0, 1.0 - std::abs(x)); }

// Cubic kernel with a = -1/2 (Keys, Cubic convolution interpolation, 1981).
double cubic(double x) {
  constexpr double kA = -0.5;
  x = std::abs(x);
  if (x < 1.0) return ((kA + 2.0) * x - (kA + 3.0)) * x * x + 1;
  if (x < 2.0) return (((x - 5) * x + 8) * x - 4) * kA;
  return 0.0;
}

// Returns half of the filter's width without reduction.
double reach(Filter filter) { return filter == Filter::kBicubic ? 2.0 : 1.0; }

// Rounds half away from zero.
std::int32_t fixed(double weight) {
  const double scaled = weight * (1 << ResizeAxis::kPrecision);
  return static_cast<std::int32_t>(scaled < 0 ? scaled - 0.5 : scaled + 0.5);
}

std::int64_t rounded(double value) { return static_cast<std::int64_t>(std::floor(value + 0.5)); }

}  // namespace

ResizeAxis::Plan ResizeAxis::plan(Range range, std::int64_t shrink, std::int64_t full, Range window,
                                  Filter filter) {
  const std::int64_t first = range.begin / shrink;
  const std::int64_t end = (range.begin + range.size + shrink - 1) / shrink;
  const auto factor = static_cast<double>(shrink);
  return {static_cast<double>(range.begin) / factor - static_cast<double>(first),
          static_cast<double>(range.size) / factor,
          first,
          end - first,
          full,
          window,
          filter};
}

bool ResizeAxis::prepare(const Plan& plan) {
  if (plan == plan_) return false;
  plan_ = plan;
  const double scale = plan.size / static_cast<double>(plan.full);
  const double widening = std::max(scale, 1.0);
  // Half of the filter's width, in source pixels.
  const double support = reach(plan.filter) * widening;
  stride_ = static_cast<std::int64_t>(std::ceil(support)) * 2 + 1;
  const auto pixels = static_cast<std::size_t>(plan.window.size);
  first_.resize(pixels);
  count_.resize(pixels);
  weights_.assign(pixels * static_cast<std::size_t>(stride_), 0);
  exact_.resize(static_cast<std::size_t>(stride_));
  const double inverse = 1.0 / widening;
  for (std::size_t i = 0; i < pixels; ++i) {
    const double middle =
        plan.begin +
        (static_cast<double>(plan.window.begin) + static_cast<double>(i) + 0.5) * scale;
    const std::int64_t first = std::max<std::int64_t>(0, rounded(middle - support));
    const std::int64_t end = std::min<std::int64_t>(plan.count, rounded(middle + support));
    double total = 0;
    for (std::int64_t t = 0; t < end - first; ++t) {
      const double place = (static_cast<double>(first + t) - middle + 0.5) * inverse;
      const double weight = plan.filter == Filter::kBicubic ? cubic(place) : triangle(place);
      exact_[static_cast<std::size_t>(t)] = weight;
      total += weight;
    }
    std::int32_t* const weights = weights_.data() + i * static_cast<std::size_t>(stride_);
    for (std::int64_t t = 0; t < end - first; ++t) {
      weights[t] = fixed(exact_[static_cast<std::size_t>(t)] / total);
    }
    first_[i] = first;
    count_[i] = end - first;
  }
  most_taps_ = *std::max_element(count_.begin(), count_.end());
  return true;
}

ResizeAxis::Taps ResizeAxis::at(std::int64_t index) const {
  const auto i = static_cast<std::size_t>(index);
  return {plan_.first + first_[i], count_[i], weights_.data() + index * stride_};
}

Range ResizeAxis::needed() const {
  return {plan_.first + first_.front(), first_.back() + count_.back() - first_.front()};
}

}  // namespace scaletrain::data
