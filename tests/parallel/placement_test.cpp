#include "lib/parallel/placement.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <string>
#include <vector>

#include "lib/parallel/stage_parallel.h"
#include "tests/dist/ranks.h"

namespace {

using namespace scaletrain;

TEST_CASE("a rank owns every parameter whole where nothing is cut, and counts it") {
  dist::Group group({}, at::kCPU, std::chrono::seconds(1));
  const dist::Mesh mesh(group, core::MeshPlan(1));
  const at::Tensor weight = at::ones({2, 3}).requires_grad_(true);
  const auto placement =
      parallel::make_placement({{.name = "weight", .tensor = weight},
                                {.name = "bias", .tensor = at::ones({2}), .decays = false}},
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
        {{.name = "weight", .tensor = at::ones({2}).requires_grad_()}}, mesh);
    const bool is_stage = dynamic_cast<parallel::StageParallel*>(placement.get()) != nullptr;
    world.end("end");
    return std::string(is_stage ? "" : "another placement");
  });
  for (const auto& result : results) CHECK(result.text == "");
}

// The gradients of one step in which rank r learns r + 1 everywhere, with replicas that train
// alone.
std::string gradients_alone(const core::WorkerEnv& env, const core::MeshSizes& sizes,
                            parallel::ShardLevel level) {
  at::set_num_threads(1);
  dist::Group world(env, at::kCPU, std::chrono::seconds(30));
  dist::Mesh mesh(world, core::MeshPlan(env.world_size, sizes));
  const at::Tensor weight = at::ones({256}).requires_grad_();
  const auto placement = parallel::make_placement({{.name = "weight", .tensor = weight}}, mesh,
                                                  {.level = level, .units = {{"weight"}}},
                                                  {.compress = {}, .seed = 0, .every_step = false});
  placement->start({});
  parallel::UnitHooks* const hooks = placement->hooks();
  const auto around = [&](parallel::Pass pass, const auto& body) {
    if (hooks != nullptr) hooks->enter(0, pass);
    body();
    if (hooks != nullptr) hooks->leave(0, pass);
  };
  placement->zero_grad();
  placement->begin_micro_step(true);
  at::Tensor loss;
  around(parallel::Pass::kForward, [&] { loss = (weight * (env.rank + 1)).sum(); });
  placement->prepare_backward(loss);
  around(parallel::Pass::kBackward, [&] { loss.backward(); });
  if (hooks != nullptr) hooks->end_backward();
  placement->exchange_rest();
  std::string text;
  for (const units::NamedParameter& one : placement->owned()) {
    text += fmt::format("{} of {} ", one.tensor.grad().mean().item<float>(), one.tensor.numel());
  }
  mesh.end("end");
  return text;
}

TEST_CASE("replicas that train alone exchange gradients within each of them") {
  struct Alone {
    core::MeshSizes sizes;
    int ranks;
    parallel::ShardLevel level;
    std::vector<std::string> expected;  // by rank
  };
  using parallel::ShardLevel;
  // Means over the replica's ranks that have other samples or tokens, of rank + 1.
  const std::vector<Alone> cases{
      {{.replica = {}}, 2, ShardLevel::kParameters, {"1 of 256 ", "2 of 256 "}},
      {{.pipe = 2, .replica = {}},
       4,
       ShardLevel::kParameters,
       {"1 of 256 ", "2 of 256 ", "3 of 256 ", "4 of 256 "}},
      {{.replica = {}, .context = 2},
       4,
       ShardLevel::kParameters,
       {"1.5 of 256 ", "1.5 of 256 ", "3.5 of 256 ", "3.5 of 256 "}},
      {{.replica = {}, .shard = 2},
       4,
       ShardLevel::kOptimizer,
       {"1.5 of 128 ", "1.5 of 128 ", "3.5 of 128 ", "3.5 of 128 "}},
      {{.replica = {}, .shard = 2},
       4,
       ShardLevel::kGradients,
       {"1.5 of 128 ", "1.5 of 128 ", "3.5 of 128 ", "3.5 of 128 "}},
      {{.replica = {}, .shard = 2},
       4,
       ShardLevel::kParameters,
       {"1.5 of 128 ", "1.5 of 128 ", "3.5 of 128 ", "3.5 of 128 "}},
      {{.replica = {}, .shard = 2, .context = 2},
       8,
       ShardLevel::kParameters,
       {"2.5 of 128 ", "2.5 of 128 ", "2.5 of 128 ", "2.5 of 128 ", "6.5 of 128 ", "6.5 of 128 ",
        "6.5 of 128 ", "6.5 of 128 "}},
  };
  for (const Alone& one : cases) {
    CAPTURE(one.sizes.shard);
    CAPTURE(one.sizes.context);
    const auto results = testing::run_ranks(
        {.world_size = one.ranks},
        [&](const core::WorkerEnv& env) { return gradients_alone(env, one.sizes, one.level); });
    for (std::size_t rank = 0; rank < results.size(); ++rank) {
      CHECK(results[rank].text == one.expected[rank]);
    }
  }
}

}  // namespace
