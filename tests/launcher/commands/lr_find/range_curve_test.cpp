#include "launcher/commands/lr_find/range_curve.h"

#include <doctest/doctest.h>

#include <cmath>
#include <functional>

namespace scaletrain::launcher {
namespace {

using Loss = std::function<double(double decade)>;  // by the base-10 logarithm of the learning rate

std::vector<RangePoint> curve(const RateRange& range, const Loss& loss) {
  std::vector<RangePoint> points;
  for (std::int64_t step = 1; step <= range.steps; ++step) {
    const double lr = range.at(step);
    points.push_back({.lr = lr, .loss = loss(std::log10(lr))});
  }
  return points;
}

// A logistic fall from 2 to 1 whose middle, its steepest point, is 1e-3; from 1e-1 on it rises.
double falls_and_rises(double decade) {
  const double fall = 1 + 1 / (1 + std::exp(4 * (decade + 3)));
  return fall + (decade > -1 ? 10 * (decade + 1) : 0);
}

std::optional<RateSuggestion> suggestion_for(const std::vector<RangePoint>& points, double width) {
  return suggest_rate(points, smoothed_loss(points, width), width);
}

// By how many decades two learning rates differ.
double decades_between(double a, double b) { return std::abs(std::log10(a / b)); }

}  // namespace

TEST_CASE("a range test takes an equal factor each step from its first to its last rate") {
  const RateRange range{.from = 1e-4, .to = 1, .steps = 5};
  CHECK(range.at(1) == doctest::Approx(1e-4));
  CHECK(range.at(2) == doctest::Approx(1e-3));
  CHECK(range.at(5) == doctest::Approx(1));
}

TEST_CASE("the warmup of a range test begins one factor below the first rate") {
  const RateRange range{.from = 2e-4, .to = 2, .steps = 5};
  // 2e-5 over 2; step 1 of an exponential warmup is at 2 * (1e-5)^(1 - 1/5) = 2e-4.
  CHECK(range.warmup_from() == doctest::Approx(1e-5));
  CHECK(range.to * std::pow(range.warmup_from(), 1 - 1.0 / 5) == doctest::Approx(range.from));
}

TEST_CASE("smoothing keeps constant losses and the sum of weights at the ends") {
  const std::vector<RangePoint> points(7, {.lr = 1, .loss = 2.5});
  for (const double loss : smoothed_loss(points, 1.0)) CHECK(loss == doctest::Approx(2.5));
  CHECK(smoothed_loss({}, 1.0).empty());
}

TEST_CASE("smoothing is a Gaussian mean of the neighbours") {
  const std::vector<double> smoothed =
      smoothed_loss({{.lr = 1, .loss = 0}, {.lr = 2, .loss = 1}, {.lr = 3, .loss = 0}}, 1.0);
  const double next = std::exp(-0.5), far = std::exp(-2.0);
  CHECK(smoothed[1] == doctest::Approx(1 / (1 + 2 * next)));
  CHECK(smoothed[0] == doctest::Approx(next / (1 + next + far)));
  CHECK(smoothed[0] == doctest::Approx(smoothed[2]));
}

TEST_CASE("the smoothing width is 3 % of the steps, at least one step") {
  CHECK(smoothing_width(100) == doctest::Approx(3));
  CHECK(smoothing_width(10) == 1);
}

TEST_CASE("the suggestion is the steepest point of an analytic curve, and its lowest one") {
  const RateRange range{.from = 1e-7, .to = 1, .steps = 100};
  const std::vector<RangePoint> points = curve(range, falls_and_rises);
  const auto suggestion = suggestion_for(points, smoothing_width(100));
  REQUIRE(suggestion);
  // A step is 7/99 of a decade; the smoothing moves the lowest point away from the rise.
  CHECK(decades_between(suggestion->steepest, 1e-3) < 0.15);
  CHECK(decades_between(suggestion->best, 1e-1) < 1);
}

TEST_CASE("noise of a tenth of the fall moves the suggestion by less than a decade") {
  const RateRange range{.from = 1e-7, .to = 1, .steps = 100};
  std::vector<RangePoint> points = curve(range, falls_and_rises);
  for (std::size_t i = 0; i < points.size(); ++i) {
    points[i].loss += 0.1 * std::sin(2.7 * static_cast<double>(i * i));
  }
  const auto suggestion = suggestion_for(points, smoothing_width(100));
  REQUIRE(suggestion);
  CHECK(decades_between(suggestion->steepest, 1e-3) < 1);
}

TEST_CASE("a loss that only rises, is constant or has no points gives no suggestion") {
  const RateRange range{.from = 1e-7, .to = 1, .steps = 50};
  const std::vector<RangePoint> rising = curve(range, [](double decade) { return 10 + decade; });
  CHECK_FALSE(suggestion_for(rising, 1));
  const std::vector<RangePoint> constant(20, {.lr = 1, .loss = 2});
  CHECK_FALSE(suggest_rate(constant, std::vector<double>(20, 2.0), 1));
  CHECK_FALSE(suggest_rate({}, {}, 1));
}

TEST_CASE("noise without a fall gives no suggestion") {
  std::vector<RangePoint> points = curve({.from = 1e-9, .to = 1e-7, .steps = 100}, falls_and_rises);
  for (std::size_t i = 0; i < points.size(); ++i) {
    points[i].loss += 0.1 * std::sin(2.7 * static_cast<double>(i * i));
  }
  CHECK_FALSE(suggestion_for(points, smoothing_width(100)));
}

TEST_CASE("a mean loss above 4 times the lowest one has diverged") {
  const auto losses = [](const std::vector<double>& values) {
    std::vector<RangePoint> points;
    for (const double value : values) points.push_back({.lr = 1, .loss = value});
    return points;
  };
  constexpr double kNarrow = 0.1;  // the mean of a step is its loss
  CHECK_FALSE(steps_until_diverged({}, kNarrow));
  CHECK_FALSE(steps_until_diverged(losses({2, 1, 4}), kNarrow));
  CHECK(steps_until_diverged(losses({2, 1, 4.01}), kNarrow) == 3);
  CHECK(steps_until_diverged(losses({2, 1, 5, 3, 9}), kNarrow) == 3);
  CHECK_FALSE(steps_until_diverged(losses({-1, 5}), kNarrow));
  // Weights 1 and exp(-1/2) and exp(-2) for 13, 1, 1: a mean of (13 + 0.742) / 1.742 = 7.9.
  CHECK(steps_until_diverged(losses({1, 1, 13}), 1.0) == 3);
  CHECK_FALSE(steps_until_diverged(losses({1, 1, 6}), 1.0));  // (6 + 0.742) / 1.742 = 3.9
}

TEST_CASE("a chart leaves out the diverging end") {
  const std::vector<RangePoint> points{{.lr = 1, .loss = 9},
                                       {.lr = 2, .loss = 9},
                                       {.lr = 3, .loss = 9},
                                       {.lr = 4, .loss = 9},
                                       {.lr = 5, .loss = 9}};
  const std::vector<RangePoint> shown = shown_points(points, {2, 1, 2.2, 2.3, 4.5});
  REQUIRE(shown.size() == 3);  // up to 2 + 0.25 * (2 - 1) = 2.25
  CHECK(shown[2].lr == 3);
  CHECK(shown[2].loss == 2.2);
  CHECK(shown_points({}, {}).empty());
}

}  // namespace scaletrain::launcher
