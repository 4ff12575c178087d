#include "lib/train/replica_states.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>

namespace scaletrain::train {

TEST_CASE("the mean is over the replicas that have given theirs, as copies") {
  const GivenStates replicas{
      .tensors = {{"buffers/mean", at::tensor({1.0F, 2.0F, 9.0F, 9.0F, 3.0F, 8.0F}).view({3, 2})},
                  {"buffers/count", at::tensor({4, 9, 6}, at::kLong).view({3, 1})},
                  {"model/mean", at::zeros({3, 2})}},
      .there = {0, 2}};
  const std::map<std::string, at::Tensor> own{{"mean", at::tensor({1.0F, 2.0F})},
                                              {"count", at::tensor({4}, at::kLong)}};
  const auto mean = mean_over_replicas(replicas, "buffers/", own);
  CHECK(at::equal(mean.at("mean"), at::tensor({2.0F, 5.0F})));  // (1 + 3) / 2, (2 + 8) / 2
  CHECK(at::equal(mean.at("count"), own.at("count")));
  CHECK_FALSE(mean.at("count").is_alias_of(own.at("count")));
  const bool is_float = mean.at("mean").scalar_type() == at::kFloat;
  CHECK(is_float);
}

TEST_CASE("states are found by what their names begin with") {
  const GivenStates replicas{.tensors = {{"buffers/a", at::zeros({2})},
                                         {"model/a", at::ones({2})},
                                         {"buffers/b", at::ones({2})}},
                             .there = {0}};
  const auto buffers = states_of(replicas, "buffers/");
  REQUIRE(buffers.size() == 2);
  CHECK(at::equal(buffers.at("a"), at::zeros({2})));
  CHECK(buffers.contains("b"));
  CHECK(GivenStates().empty());
  CHECK_FALSE(replicas.empty());
}

}  // namespace scaletrain::train
