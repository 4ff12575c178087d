// What parts of gradients' ranks ask for where an update's weights come during the next forward.
#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <vector>

#include "lib/dist/fake/network.h"
#include "lib/parallel/sharded.h"

namespace {

using namespace scaletrain;
using dist::FakeKind;
using parallel::Pass;

TEST_CASE("weights of a unit that forward leaves out are gathered before gradients are added up") {
  const auto network = std::make_shared<dist::FakeNetwork>(dist::FakeJob{.ranks_per_node = 2});
  dist::Group world(network, at::kCPU);
  const dist::Mesh mesh(world, core::MeshPlan(2, {.replica = {}, .shard = 2}));
  std::vector<units::NamedParameter> parameters;
  parallel::ShardingOptions sharding{.level = parallel::ShardLevel::kGradients};
  for (const std::string name : {"a", "b", "c", "d"}) {
    parameters.push_back({.name = name, .tensor = at::zeros({6}).requires_grad_(true)});
    sharding.units.push_back({name});
  }
  parallel::Sharded sharded(std::move(parameters), mesh, sharding);
  sharded.start({});
  sharded.spread_ahead();
  sharded.begin_micro_step(/*synchronize=*/true);
  sharded.enter(0, Pass::kForward);
  sharded.leave(0, Pass::kForward);
  sharded.prepare_backward({});
  sharded.end_backward();

  std::vector<FakeKind> kinds;
  for (const dist::FakeCall& call : network->calls()) kinds.push_back(call.kind);
  std::vector<FakeKind> expected(4, FakeKind::kAllGather);
  expected.insert(expected.end(), 4, FakeKind::kReduceScatter);
  CHECK((kinds == expected));
}

}  // namespace
