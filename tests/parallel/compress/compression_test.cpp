#include "lib/parallel/compress/compression.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "tests/dist/ranks.h"

namespace {

using namespace scaletrain;
using parallel::Compression;

const std::vector<units::NamedParameter>& matrix_and_bias() {
  static const std::vector<units::NamedParameter> all{{.name = "w", .tensor = at::zeros({2, 300})},
                                                      {.name = "b", .tensor = at::zeros({3})}};
  return all;
}

TEST_CASE("a bucket's slots lie one behind the other, vectors without rows") {
  const std::vector<parallel::Slot> slots = parallel::slots_of(matrix_and_bias(), {1, 0});
  REQUIRE(slots.size() == 2);
  CHECK(slots[0].name == "b");
  CHECK(slots[0].begin == 0);
  CHECK_FALSE(slots[0].is_matrix());
  CHECK(slots[1].begin == 3);
  CHECK(slots[1].elements == 600);
  CHECK(slots[1].rows == 2);
}

TEST_CASE("the first steps are exchanged as they are, and what was not sent is state") {
  const auto results = testing::run_ranks({.world_size = 2}, [](const core::WorkerEnv& env) {
    at::set_num_threads(1);
    dist::Group group(env, at::kCPU, std::chrono::seconds(30));
    Compression compression({.name = "int8", .rank = 4, .warmup = 1}, 3, group);
    compression.add(parallel::slots_of(matrix_and_bias(), {0, 1}));
    std::string text;
    for (int step = 0; step < 2; ++step) {
      compression.begin_step(step);
      const std::int64_t before = compression.bytes();
      const at::Tensor flat = at::arange(603, at::kFloat) * (env.rank + 1);
      const at::Tensor mean = at::arange(603, at::kFloat) * 1.5;
      parallel::BucketExchange& bucket = *compression.exchanges().now->front();
      bucket.begin(flat);
      bucket.go_on();
      bucket.finish();
      compression.end_step(at::zeros({}));
      const double off = (flat - mean).abs().max().item<double>();
      text += fmt::format("{} bytes, {}; ", compression.bytes() - before,
                          off == 0  ? "exact"
                          : off < 8 ? "rounded"
                                    : "wrong");
    }
    const auto state = compression.state();
    const bool has_error =
        state.size() == 1 && state.at("error/w").tensor.abs().max().item<double>() > 0;
    group.end("end");
    return text + (has_error ? "an error" : "no error");
  });
  // 603 floats; 3 blocks of 256 with a scale each, and 3 floats.
  for (const auto& result : results) {
    CHECK(result.text == "2412 bytes, exact; 792 bytes, rounded; an error");
  }
}

}  // namespace
