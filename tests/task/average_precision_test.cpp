#include "lib/task/average_precision.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include <cmath>
#include <limits>

namespace scaletrain::task {
namespace {

double map_of(std::initializer_list<float> scores, std::initializer_list<float> shares,
              std::int64_t classes) {
  return mean_average_precision(at::tensor(scores).view({-1, classes}),
                                at::tensor(shares).view({-1, classes}));
}

}  // namespace

// More is compared with scikit-learn's in tests/parity/multi_label_test.py.
TEST_CASE("precision is averaged over the steps of recall, equal scores being one step") {
  CHECK(map_of({4, 3, 2, 1}, {1, 0, 1, 0}, 1) == doctest::Approx((1 + 2.0 / 3) / 2));
  CHECK(map_of({1, 2, 3, 4}, {1, 0, 1, 0}, 1) == doctest::Approx((1 / 2.0 + 2 / 4.0) / 2));
  CHECK(map_of({2, 2, 2, 1}, {1, 0, 1, 1}, 1) == doctest::Approx((2 * 2.0 / 3 + 3 / 4.0) / 3));
}

TEST_CASE("classes that no sample has are left out") {
  // Class 0: its one sample is second of two; class 1 has none.
  CHECK(map_of({1, 5, 2, 6}, {1, 0, 0, 0}, 2) == doctest::Approx(0.5));
  CHECK(map_of({1, 2}, {0, 0}, 1) == 0);
  CHECK(mean_average_precision(at::zeros({0, 3}), at::zeros({0, 3})) == 0);
}

TEST_CASE("scores that are no numbers have no order; infinite ones have") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float infinity = std::numeric_limits<float>::infinity();
  CHECK(std::isnan(map_of({1, nan, 2}, {1, 0, 0}, 1)));
  CHECK(map_of({infinity, -infinity, 0}, {1, 1, 0}, 1) == doctest::Approx((1 + 2.0 / 3) / 2));
}

}  // namespace scaletrain::task
