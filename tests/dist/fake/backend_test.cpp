#include "lib/dist/fake/backend.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include "lib/dist/mesh.h"

namespace {

using namespace scaletrain;
using core::Axis;

TEST_CASE("a rank of a mesh whose other ranks do not exist gets zeros from them") {
  const auto network = std::make_shared<dist::FakeNetwork>(
      dist::FakeJob{.rank = 5, .world_size = 8, .ranks_per_node = 2});
  dist::Group world(network, at::kCPU);
  CHECK(world.exchange() == "fake");
  CHECK(world.rank() == 5);
  dist::Mesh mesh(world, core::MeshPlan(8, {.pipe = 1, .replica = {}, .shard = 4, .tensor = 2}));
  dist::Group& shard = mesh.group(Axis::kShard);  // ranks 1, 3, 5 and 7
  CHECK(shard.rank() == 2);

  const at::Tensor whole = at::full({8}, 9.0), part = at::arange(1, 3, at::kFloat);
  shard.all_gather(whole, part, "parameters").wait();
  CHECK(at::equal(whole, at::tensor({0, 0, 0, 0, 1, 2, 0, 0}, at::kFloat)));
  const at::Tensor own = at::empty({2});
  shard.reduce_scatter_sum(own, at::arange(8, at::kFloat), "gradients").wait();
  CHECK(at::equal(own, at::tensor({4, 5}, at::kFloat)));
  const at::Tensor sum = at::full({3}, 7.0);
  mesh.group(Axis::kTensor).all_reduce_sum(sum, "activations").wait();
  CHECK(at::equal(sum, at::full({3}, 7.0)));
  const at::Tensor given = at::full({3}, 7.0);
  world.broadcast(given, 0, "model").wait();
  CHECK(at::equal(given, at::zeros({3})));
  const std::vector<at::Tensor> all = world.gather(at::ones({1}), 5, "scores");
  CHECK(at::cat(all).sum().item<float>() == 1);
  CHECK(at::equal(all[5], at::ones({1})));

  const std::vector<dist::FakeCall> calls = network->calls();
  REQUIRE(calls.size() == 5);
  CHECK(calls[0].ranks == std::vector<int>{1, 3, 5, 7});
  CHECK(calls[0].bytes == 32);
  CHECK(calls[1].bytes == 32);
  CHECK(calls[2].ranks == std::vector<int>{4, 5});
  CHECK(calls[2].bytes == 12);
  mesh.end("the end");
}

TEST_CASE("a simulated receive gets as many bytes as were sent, or zeros for another size") {
  const auto network =
      std::make_shared<dist::FakeNetwork>(dist::FakeJob{.rank = 0, .world_size = 2});
  dist::Group world(network, at::kCPU);
  const at::Tensor rows = at::arange(3, at::kFloat);
  const at::Tensor same = at::empty({3}), fewer = at::empty({2});
  world.all_to_all(same, rows, {2, 1}, {2, 1}, "tokens").wait();
  CHECK(at::equal(same, rows));
  world.all_to_all(fewer, rows, {1, 1}, {2, 1}, "tokens").wait();
  CHECK(at::equal(fewer, at::zeros({2})));
  CHECK(network->calls()[1].bytes == 12);
}

TEST_CASE("a simulated wait for a message is recorded, and overlaps with computation") {
  const auto network = std::make_shared<dist::FakeNetwork>(
      dist::FakeJob{.rank = 0, .world_size = 2, .ranks_per_node = 2, .inside = {.latency_s = 0.2}});
  dist::Group world(network, at::kCPU);
  dist::Pending pending = world.all_reduce_sum(at::ones({1}), "sum");
  const core::SteadyTime start = core::now();
  pending.wait();
  CHECK(core::seconds_since(start) > 0.1);
  CHECK(network->calls().front().waited_s > 0.1);
  dist::Pending later = world.all_reduce_sum(at::ones({1}), "sum");
  while (!later.is_over()) {
  }
  later.wait();
  CHECK(network->calls().back().waited_s < 0.1);
}

}  // namespace
