#include "lib/nn/layers/drop_path.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>
#include <torch/utils.h>

namespace scaletrain::nn {

TEST_CASE("drop_path leaves out whole samples and divides the others by the share that stays") {
  torch::manual_seed(1);
  const at::Tensor branch = at::ones({4000, 2, 3});
  const at::Tensor dropped = drop_path(branch, 0.25, true);
  const at::Tensor values = dropped.select(2, 0).select(1, 0);
  CHECK(at::equal(dropped, values.view({4000, 1, 1}).expand({4000, 2, 3})));
  const at::Tensor kept = values != 0;
  CHECK(at::equal(values, kept * (1 / 0.75f)));
  // 3000 stay of 4000, give or take five deviations: sqrt(4000 * 0.25 * 0.75) = 27
  CHECK(std::abs(kept.sum().item<std::int64_t>() - 3000) < 137);
  CHECK(at::equal(drop_path(branch, 0.25, false), branch));
  CHECK(at::equal(drop_path(branch, 0, true), branch));
}

TEST_CASE("the rates of blocks go evenly from 0 to the last one's") {
  CHECK(drop_path_rates(0.3, 4) == std::vector<double>{0, 0.3 * 1 / 3, 0.3 * 2 / 3, 0.3 * 3 / 3});
  CHECK(drop_path_rates(0.3, 1) == std::vector<double>{0});
}

}  // namespace scaletrain::nn
