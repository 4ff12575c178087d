#include "lib/parallel/placement.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include "lib/parallel/stage_parallel.h"
#include "tests/dist/ranks.h"

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

TEST_CASE("a pipeline's stage averages behind the last backward what it holds whole") {
  const auto results = testing::run_ranks({.world_size = 2}, [](const core::WorkerEnv& env) {
    dist::Group world(env, at::kCPU, std::chrono::seconds(30));
    const dist::Mesh mesh(world, core::MeshPlan(2, {.pipe = 2, .replica = {}}));
    const auto placement = parallel::make_placement(
        {{.name = "weight", .tensor = at::ones({2}).requires_grad_(), .shape = {2}}}, mesh);
    const bool is_stage = dynamic_cast<parallel::StageParallel*>(placement.get()) != nullptr;
    world.end("end");
    return std::string(is_stage ? "" : "another placement");
  });
  for (const auto& result : results) CHECK(result.text == "");
}

}  // namespace
