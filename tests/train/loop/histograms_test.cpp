#include "lib/train/loop/histograms.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/tensor.h>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <chrono>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "tests/dist/ranks.h"

namespace scaletrain::train {
namespace {

using observe::HistogramRecord;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Joins a job of `env`; of one rank by default.
dist::Group join(const core::WorkerEnv& env = {}) {
  return {env, at::kCPU, std::chrono::seconds(30)};
}

std::vector<HistogramRecord> alone(const std::vector<double>& values) {
  dist::Group group = join();
  return histograms_of({"w"}, {{.name = "w", .values = at::tensor(values)}}, group);
}

}  // namespace

TEST_CASE("a histogram counts the finite values in equal buckets") {
  const auto records = alone({-1, 0, 0.99, 1, 1});
  REQUIRE(records.size() == 1);
  const HistogramRecord& record = records[0];
  CHECK(record.name == "w");
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
  const auto equal = alone({2, 2, kInfinity});
  REQUIRE(equal.size() == 1);
  CHECK(equal[0].counts == std::vector<std::int64_t>{2});
  CHECK(equal[0].not_finite == 1);
  const auto none = alone({kInfinity});
  REQUIRE(none.size() == 1);
  CHECK(none[0].counts.empty());
  CHECK(none[0].not_finite == 1);
}

TEST_CASE("a tensor without values has no histogram") {
  CHECK(alone({}).empty());
  dist::Group group = join();
  const auto records = histograms_of(
      {"frozen", "w"}, {{.name = "w", .values = at::tensor(std::vector<double>{1})}}, group);
  REQUIRE(records.size() == 1);
  CHECK(records[0].name == "w");
}

TEST_CASE("shards of a tensor on several ranks have the histogram of the full tensor") {
  const auto results = testing::run_ranks({.world_size = 3}, [](const core::WorkerEnv& env) {
    dist::Group group = join(env);
    // Rank 0 has 0 to 63 of `w`, rank 1 the rest, and rank 2 nothing; `b` is on rank 2 alone.
    const at::Tensor full = at::arange(129, at::kDouble);
    std::vector<LocalValues> local;
    if (env.rank == 0) local.push_back({.name = "w", .values = full.slice(0, 0, 64)});
    if (env.rank == 1) local.push_back({.name = "w", .values = full.slice(0, 64)});
    if (env.rank == 1) local.push_back({.name = "b", .values = at::empty({0}, at::kDouble)});
    if (env.rank == 2)
      local.push_back({.name = "b", .values = at::tensor(std::vector<double>{-2, kInfinity})});
    std::string text;
    for (const HistogramRecord& one : histograms_of({"w", "b"}, local, group)) {
      text +=
          fmt::format("{}: {} to {}, sum {}, squares {}, {} not finite, {} to {} in {} buckets;",
                      one.name, one.min, one.max, one.sum, one.sum_squares, one.not_finite,
                      one.counts.front(), one.counts.back(), one.counts.size());
    }
    group.barrier("end");
    return text;
  });
  for (const auto& result : results) {
    CHECK(result.status == 0);
    // 0 + ... + 128 = 8256; of the squares 128 * 129 * 257 / 6 = 707264
    CHECK(result.text ==
          "w: 0 to 128, sum 8256, squares 707264, 0 not finite, 2 to 3 in 64 buckets;"
          "b: -2 to -2, sum -2, squares 4, 1 not finite, 1 to 1 in 1 buckets;");
  }
}

}  // namespace scaletrain::train
