#include "lib/train/simulate/part_plan.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>

namespace scaletrain::train {
namespace {

using parallel::ShardLevel;

// Three units of a parameter each, of 64, 32 and 64 elements of fp32.
std::vector<units::NamedParameter> three_parameters() {
  std::vector<units::NamedParameter> parameters{{.name = "a", .tensor = at::zeros({8, 8})},
                                                {.name = "b", .tensor = at::zeros({32})},
                                                {.name = "c", .tensor = at::zeros({64})}};
  for (units::NamedParameter& one : parameters) one.tensor.requires_grad_(true);
  return parameters;
}

parallel::ShardingOptions three_units(ShardLevel level) {
  return {.level = level, .units = {{"a"}, {"b"}, {"c"}}};
}

constexpr std::int64_t kAll = 4 * (64 + 32 + 64);  // bytes

std::int64_t bytes_of(const std::vector<CopyBucket>& buckets) {
  return copy_traffic({}, buckets).reduced;
}

}  // namespace

TEST_CASE("a rank has its part of each block, and gathers each once where it stays") {
  for (const ShardLevel level : {ShardLevel::kOptimizer, ShardLevel::kGradients}) {
    const PartPlan plan = plan_parts(three_parameters(), three_units(level),
                                     {.ranks = 2, .place = 1, .stages = {{0, 3}}, .micros = 4});
    CHECK(plan.owned.size() == 3);
    CHECK(plan.owned[0].tensor.numel() == 32);
    CHECK(plan.owned[0].tensor.is_meta());
    CHECK(plan.bytes == kAll / 2);
    CHECK(plan.gathers.calls == 3);
    CHECK(plan.gathers.bytes == kAll);
    const std::int64_t times = level == ShardLevel::kOptimizer ? 1 : 4;
    CHECK(plan.scatters.calls == 3 * times);
    CHECK(plan.scatters.bytes == kAll * times);
    CHECK(plan.copies.size() == 3);
    CHECK(bytes_of(plan.copies) == kAll / 2);
  }
}

TEST_CASE("what comes and goes is gathered forward and backward, but for the last unit") {
  const PartPlan plan = plan_parts(three_parameters(), three_units(ShardLevel::kParameters),
                                   {.ranks = 2, .place = 0, .stages = {{0, 3}}, .micros = 2});
  CHECK(plan.gathers.calls == 2 * (2 + 2 + 1));
  CHECK(plan.gathers.bytes == 2 * (2 * kAll - 4 * 64));
  CHECK(plan.together == 4 * (64 + 32));
}

TEST_CASE("the last unit of a pipeline's stage does not stay, and others' are not there") {
  std::vector<units::NamedParameter> parameters = three_parameters();
  parameters.pop_back();
  const PartPlan plan =
      plan_parts(parameters, three_units(ShardLevel::kParameters),
                 {.ranks = 2, .place = 0, .stages = {{0, 2}}, .is_of_pipeline = true, .micros = 3});
  CHECK(plan.gathers.calls == 3 * (2 + 2));
  CHECK(plan.together == 4 * (64 + 32));
}

TEST_CASE("each pipeline stage communicates the blocks that it uses, tied ones too") {
  const PartOf of{
      .ranks = 2, .place = 0, .stages = {{0, 1}, {2, 3}}, .is_of_pipeline = true, .micros = 2};
  std::vector<units::NamedParameter> parameters = three_parameters();
  parameters.erase(parameters.begin() + 1);
  parallel::ShardingOptions sharding = three_units(ShardLevel::kGradients);
  CHECK(plan_parts(parameters, sharding, of).scatters.calls == 2 * 2);
  sharding.units[2].push_back("a");
  CHECK(plan_parts(parameters, sharding, of).scatters.calls == 2 * (2 + 1));
  sharding.level = ShardLevel::kOptimizer;
  CHECK(plan_parts(parameters, sharding, of).scatters.calls == 2);
}

TEST_CASE("bf16 is half as much, of what is gathered and of what is added up") {
  parallel::ShardingOptions sharding = three_units(ShardLevel::kParameters);
  sharding.gathered_as_bf16 = {"a", "b", "c"};
  sharding.reduces_as_bf16 = true;
  const PartPlan plan = plan_parts(three_parameters(), sharding,
                                   {.ranks = 2, .place = 0, .stages = {{0, 3}}, .micros = 1});
  CHECK(plan.bytes == kAll / 2);  // fp32
  CHECK(plan.gathers.bytes == (2 * kAll - 4 * 64) / 2);
  CHECK(plan.scatters.bytes == kAll / 2);
  CHECK(bytes_of(plan.copies) == kAll / 2);  // fp32
  CHECK(plan.together == 2 * (64 + 32));
}

}  // namespace scaletrain::train
