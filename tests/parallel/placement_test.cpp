#include "lib/parallel/placement.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>

namespace {

using namespace scaletrain;

TEST_CASE("a rank owns every parameter whole where nothing is cut, and counts it") {
  dist::Group group({}, at::kCPU, std::chrono::seconds(1));
  const dist::Mesh mesh(group, core::MeshPlan(1));
  const at::Tensor weight = at::ones({2, 3}).requires_grad_(true);
  const auto placement = parallel::make_placement(
      {{.name = "weight", .tensor = weight, .shape = {2, 3}},
       {.name = "bias", .tensor = at::ones({2}), .shape = {2}, .decays = false}},
      mesh);
  const std::vector<units::NamedParameter>& owned = placement->owned();
  REQUIRE(owned.size() == 2);
  CHECK(owned[0].name == "weight");
  CHECK(owned[0].tensor.is_same(weight));
  CHECK(owned[0].dimensions() == 2);
  CHECK(owned[0].begin == 0);
  CHECK(owned[0].decays);
  CHECK(owned[0].counts);
  CHECK(owned[1].name == "bias");
  CHECK_FALSE(owned[1].decays);
}

}  // namespace
