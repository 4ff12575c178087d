#include "lib/train/rules/spike_bounds.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

namespace scaletrain::train {
namespace {

using Measures = std::vector<format::StepMeasure>;

// Steps 1 to `count` with these losses in turn, and norms of twice as much.
Measures measures(std::int64_t count, const std::vector<double>& losses) {
  Measures result;
  for (std::int64_t i = 0; i < count; ++i) {
    const double loss = losses[static_cast<std::size_t>(i) % losses.size()];
    result.push_back({i + 1, loss, 2 * loss});
  }
  return result;
}

constexpr double kNone = std::numeric_limits<double>::infinity();

}  // namespace

TEST_CASE("the bound of equal values is the median times e to the floor of the width") {
  // asinh(x / s) is ln(2 x / s) for x far above s: the bound is 100 * e^(4 * 0.05).
  CHECK(robust_bound({100, 100, 100}, 4, 1e-6) == doctest::Approx(100 * std::exp(0.2)));
}

TEST_CASE("the bound is the median plus scaled median absolute deviations of the logarithm") {
  // Logarithms 0, 1, 2, 3, 4: the median is 2, its deviations 2, 1, 0, 1, 2 have the median 1.
  std::vector<double> values;
  for (int power = 0; power < 5; ++power) values.push_back(std::exp(power));
  CHECK(robust_bound(values, 2, 1e-6) == doctest::Approx(std::exp(2 + 2 * 1.4826)));
  values.push_back(std::exp(5));  // of an even number: 2.5, deviations 0.5, 1.5, 2.5 twice each
  CHECK(robust_bound(values, 2, 1e-6) == doctest::Approx(std::exp(2.5 + 2 * 1.4826 * 1.5)));
}

TEST_CASE("up to half of the values may be outliers") {
  const double clean = robust_bound({1, 1.1, 1.2, 1.3, 1.4}, 6, 0.1);
  const double spoilt = robust_bound({1, 1.1, 1.2, 1.3, 1.4, 1e6, 1e9}, 6, 0.1);
  CHECK(clean < 10);
  CHECK(spoilt < 20);
}

TEST_CASE("far below the linear scale a value may grow by orders of magnitude") {
  // 0.1 * sinh(6 * 0.05), nearly, for losses of about 0.
  CHECK(robust_bound({1e-7, 1e-6, 1e-5}, 6, 0.1) ==
        doctest::Approx(0.1 * std::sinh(0.3)).epsilon(1e-3));
  CHECK(robust_bound({-1, -1, -1}, 6, 0.1) < 0);  // losses may be negative
}

TEST_CASE("there is no bound before half of the window is known") {
  const Measures five = measures(5, {1});
  CHECK(spike_bounds(five, 5, 8, 6) == SpikeBounds{kNone, kNone});  // steps 1 to 3
  CHECK(std::isfinite(spike_bounds(five, 6, 8, 6).loss));           // steps 1 to 4
  CHECK(spike_bounds({}, 1, 4, 6) == SpikeBounds{});
}

TEST_CASE("a step's bounds are those of the steps before the one before it") {
  const Measures eight = measures(8, {1, 1.1, 1.3, 1.6, 2, 2.5, 3.1, 3.8});
  Measures nine = eight;
  nine.push_back({9, 50, 70});
  const SpikeBounds bounds = spike_bounds(eight, 10, 8, 6);
  CHECK(std::isfinite(bounds.loss));
  CHECK(bounds.grad_norm > bounds.loss);
  CHECK(spike_bounds(nine, 10, 8, 6) == bounds);  // known already, or not yet
  CHECK(spike_bounds(nine, 11, 8, 6) != bounds);
}

TEST_CASE("only the newest steps of the window count") {
  Measures both = measures(20, {1000});
  for (Measures recent = measures(8, {1, 1.5, 2}); format::StepMeasure & one : recent) {
    both.push_back({one.step + 20, one.loss, one.grad_norm});
  }
  CHECK(spike_bounds(both, 30, 8, 6) == spike_bounds(measures(8, {1, 1.5, 2}), 10, 8, 6));
}

}  // namespace scaletrain::train
