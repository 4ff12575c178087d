#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include <chrono>
#include <thread>
#include <vector>

#include "lib/parallel/sharded.h"
#include "lib/train/simulate/fake_run.h"

namespace scaletrain::train {
namespace {

using namespace std::chrono_literals;
using parallel::Pass;

constexpr std::size_t kUnits = 12;
constexpr std::int64_t kElements = 1 << 10;  // of each unit
constexpr int kRanks = 8;
constexpr auto kForward = 30ms, kBackward = 60ms;  // of each unit: sleeping, which nobody disturbs
constexpr double kExchanges = 0.8 * 12 * 0.060;    // seconds

dist::FakeCall call_of(std::vector<int> ranks, double asked_s, double done_s, double waited_s) {
  const core::SteadyTime start{};
  const auto at = [start](double seconds) {
    return start + std::chrono::duration_cast<core::SteadyTime::duration>(
                       std::chrono::duration<double>(seconds));
  };
  return {
      .ranks = std::move(ranks), .waited_s = waited_s, .asked = at(asked_s), .done = at(done_s)};
}

TEST_CASE("exposed is what was waited for, and of a Reducer's buckets what is behind the last") {
  CHECK(exposed_seconds({}) == 0);
  using Calls = std::vector<dist::FakeCall>;
  CHECK(exposed_seconds(Calls{call_of({0, 1}, 0, 5, 2), call_of({0, 1}, 1, 9, 0.5)}) ==
        doctest::Approx(2.5));
  CHECK(exposed_seconds(Calls{call_of({0, 1}, 0, 5, 0), call_of({0, 1}, 4, 7, 0),
                              call_of({0, 2}, 0, 1, 0.25)}) == doctest::Approx(3.25));
}

// A step of a model whose units take so long, in the calls that an engine makes.
void step(parallel::Sharded& sharded) {
  sharded.zero_grad();
  sharded.begin_micro_step(true);
  for (std::size_t unit = 0; unit < kUnits; ++unit) {
    sharded.enter(unit, Pass::kForward);
    std::this_thread::sleep_for(kForward);
    sharded.leave(unit, Pass::kForward);
  }
  sharded.prepare_backward({});
  for (std::size_t unit = kUnits; unit-- > 0;) {
    sharded.enter(unit, Pass::kBackward);
    std::this_thread::sleep_for(kBackward);
    sharded.leave(unit, Pass::kBackward);
  }
  sharded.end_backward();
}

// What a second step asks for, where messages of a step take 80 % of backward's 12 x 60 ms.
std::vector<dist::FakeCall> calls_of_step(parallel::ShardLevel level, std::size_t messages) {
  const auto network = std::make_shared<dist::FakeNetwork>(
      dist::FakeJob{.rank = 1,
                    .world_size = kRanks,
                    .ranks_per_node = 8,
                    .inside = {.latency_s = kExchanges / static_cast<double>(messages)}});
  dist::Group world(network, at::kCPU);
  const dist::Mesh mesh(world, core::MeshPlan(kRanks, {.pipe = 1, .replica = {}, .shard = kRanks}));
  std::vector<units::NamedParameter> parameters;
  parallel::Sharding sharding{.level = level};
  for (std::size_t unit = 0; unit < kUnits; ++unit) {
    const std::string name = "unit" + std::to_string(unit);
    parameters.push_back({name, at::zeros({kElements}).requires_grad_(true)});
    sharding.units.push_back({name});
  }
  parallel::Sharded sharded(std::move(parameters), mesh, sharding);
  sharded.start({});
  step(sharded);
  const std::size_t before = network->count();
  sharded.spread_ahead();
  step(sharded);
  const std::vector<dist::FakeCall> calls = network->calls();
  return {calls.begin() + static_cast<std::ptrdiff_t>(before), calls.end()};
}

TEST_CASE("parameters and gradients of shards travel while units compute") {
  struct Case {
    parallel::ShardLevel level;
    std::size_t messages;
  };
  // A step scatters each unit once, and gathers it twice, but for the last, or behind the update.
  for (const Case& one : {Case{parallel::ShardLevel::kParameters, 3 * kUnits - 1},
                          Case{parallel::ShardLevel::kGradients, 2 * kUnits},
                          Case{parallel::ShardLevel::kOptimizer, 2 * kUnits}}) {
    CAPTURE(one.messages);
    const std::vector<dist::FakeCall> calls = calls_of_step(one.level, one.messages);
    CHECK(calls.size() == one.messages);
    double all_s = 0;
    for (const dist::FakeCall& call : calls) all_s += call.seconds;
    CHECK(all_s == doctest::Approx(kExchanges));
    // Nothing hides the first gathering and the last scattering.
    CHECK(exposed_seconds(calls) > 0);
    CHECK(exposed_seconds(calls) <= 0.15 * all_s);
  }
}

}  // namespace
}  // namespace scaletrain::train
