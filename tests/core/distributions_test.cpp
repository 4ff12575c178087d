#include "lib/core/distributions.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

using namespace scaletrain::core;  // NOLINT(google-build-using-namespace)

namespace {

struct Moments {
  double mean = 0, variance = 0, least = 1e9, most = -1e9;
};

template <class Draw>
Moments moments_of(const Draw& draw) {
  constexpr int kDraws = 40000;
  Moments result;
  double squares = 0;
  for (int i = 0; i < kDraws; ++i) {
    Philox draws(7, DrawPurpose::kAugment, 0, static_cast<std::uint64_t>(i));
    const double value = draw(draws);
    result.mean += value / kDraws;
    squares += value * value / kDraws;
    result.least = std::min(result.least, value);
    result.most = std::max(result.most, value);
  }
  result.variance = squares - result.mean * result.mean;
  return result;
}

}  // namespace

TEST_CASE("normal has mean 0 and variance 1") {
  const Moments normals = moments_of(normal);
  CHECK(std::abs(normals.mean) < 0.02);  // 4 standard deviations of the mean
  CHECK(std::abs(normals.variance - 1) < 0.03);
  CHECK(normals.most > 3.5);
  CHECK(normals.least < -3.5);
}

TEST_CASE("symmetric_beta has mean 1/2 and variance 1 / (8 alpha + 4), at tiny alpha too") {
  for (const double alpha : {0.001, 0.1, 0.2, 1.0, 4.0}) {
    const Moments betas = moments_of([&](Philox& draws) { return symmetric_beta(draws, alpha); });
    CAPTURE(alpha);
    CHECK(std::abs(betas.mean - 0.5) < 0.01);
    CHECK(std::abs(betas.variance - 1 / (8 * alpha + 4)) < 0.005);
    CHECK(betas.least >= 0);
    CHECK(betas.most <= 1);
  }
}

TEST_CASE("uniform stays in its range, happens is as often as its probability") {
  const Moments numbers = moments_of([](Philox& draws) { return uniform(draws, -3, 5); });
  CHECK(numbers.least >= -3);
  CHECK(numbers.most < 5);
  CHECK(std::abs(numbers.mean - 1) < 0.05);
  CHECK(moments_of([](Philox& draws) { return happens(draws, 0) ? 1 : 0; }).most == 0);
  CHECK(moments_of([](Philox& draws) { return happens(draws, 1) ? 1 : 0; }).least == 1);
  CHECK(std::abs(moments_of([](Philox& draws) { return happens(draws, 0.2) ? 1 : 0; }).mean - 0.2) <
        0.01);
}
