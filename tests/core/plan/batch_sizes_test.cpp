#include "lib/core/plan/batch_sizes.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

using scaletrain::core::BatchRamp;
using scaletrain::core::BatchSizes;

namespace {

// Megatron-LM's rule (megatron/core/num_microbatches_calculator.py), step after step.
std::vector<std::int64_t> sizes_by_rule(std::int64_t global, const BatchRamp& ramp, int steps) {
  std::vector<std::int64_t> sizes;
  std::int64_t consumed = 0;
  const std::int64_t increments = (global - ramp.start) / ramp.increment;
  for (int step = 0; step < steps; ++step) {
    const bool is_over = consumed > ramp.samples;
    const std::int64_t times = is_over ? increments : consumed * increments / ramp.samples;
    sizes.push_back(ramp.start + times * ramp.increment);
    consumed += sizes.back();
  }
  return sizes;
}

}  // namespace

TEST_CASE("a batch that does not grow is the same in all steps") {
  const BatchSizes sizes(12);
  CHECK(sizes.of_step(0) == 12);
  CHECK(sizes.of_step(1000) == 12);
  CHECK(sizes.samples_before(1000) == 12000);
  CHECK(sizes.step_of_sample(11999) == 999);
  CHECK(sizes.step_of_sample(12000) == 1000);
}

TEST_CASE("a batch grows step by step as Megatron's rule says, and its samples add up") {
  struct Case {
    std::int64_t global;
    BatchRamp ramp;
  };
  const std::vector<Case> cases{{12, {4, 4, 24}},       {1152, {16, 8, 65535}}, {100, {10, 30, 7}},
                                {64, {1, 1, 1000}},     {64, {1, 1, 20}},       {8, {4, 4, 1}},
                                {256, {64, 64, 100000}}};
  for (const Case& one : cases) {
    CAPTURE(one.global);
    const BatchSizes sizes(one.global, one.ramp);
    CHECK(sizes.global() == one.global);
    const std::vector<std::int64_t> expected = sizes_by_rule(one.global, one.ramp, 2000);
    std::int64_t samples = 0;
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const auto step = static_cast<std::int64_t>(i);
      REQUIRE(sizes.of_step(step) == expected[i]);
      REQUIRE(sizes.samples_before(step) == samples);
      REQUIRE(sizes.step_of_sample(samples) == step);
      samples += expected[i];
      REQUIRE(sizes.step_of_sample(samples - 1) == step);
    }
  }
}

TEST_CASE("a ramp that cannot be is known as such") {
  CHECK(BatchSizes::why_not(12, {4, 4, 24}) == std::string());
  CHECK(BatchSizes::why_not(12, {0, 4, 24}) == std::string("has a number below 1"));
  CHECK(BatchSizes::why_not(12, {12, 4, 24}) == std::string("does not grow"));
  CHECK(BatchSizes::why_not(12, {4, 3, 24}) == std::string("does not meet the whole batch"));
  CHECK(BatchSizes::why_not(20000, {1, 1, 24}) == std::string("has too many sizes"));
  CHECK(BatchSizes::why_not(10001, {1, 1, 24}) == std::string());
}
