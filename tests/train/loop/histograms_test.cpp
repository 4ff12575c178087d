#include "lib/train/loop/histograms.h"

#include <ATen/ops/tensor.h>
#include <doctest/doctest.h>

#include <limits>
#include <numeric>
#include <vector>

namespace scaletrain::train {

TEST_CASE("a histogram counts the finite values in equal buckets") {
  const observe::HistogramRecord record =
      histogram_of("w", at::tensor(std::vector<double>{-1, 0, 0.99, 1, 1}, at::kFloat));
  CHECK(record.min == -1);
  CHECK(record.max == 1);
  CHECK(record.sum == doctest::Approx(1.99));
  CHECK(record.sum_squares == doctest::Approx(3.9801));  // 1 + 0 + 0.9801 + 1 + 1
  REQUIRE(record.counts.size() == 64);
  CHECK(record.counts.front() == 1);
  CHECK(record.counts[32] == 1);     // 0 is the left edge of the upper half
  CHECK(record.counts.back() == 3);  // the last bucket has its right edge
  CHECK(std::accumulate(record.counts.begin(), record.counts.end(), std::int64_t{0}) == 5);
}

TEST_CASE("equal values are one bucket, and values that are not finite are in none") {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const auto equal = histogram_of("w", at::tensor(std::vector<double>{2, 2, kInfinity}));
  CHECK(equal.counts == std::vector<std::int64_t>{2});
  CHECK(equal.not_finite == 1);
  const auto none = histogram_of("w", at::tensor(std::vector<double>{kInfinity}));
  CHECK(none.counts.empty());
  CHECK(none.not_finite == 1);
}

}  // namespace scaletrain::train
