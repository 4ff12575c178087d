#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include <chrono>
#include <thread>

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
  CHECK(exposed_seconds({call_of({0, 1}, 0, 5, 2), call_of({0, 1}, 1, 9, 0.5)}) ==
        doctest::Approx(2.5));
  CHECK(exposed_seconds({call_of({0, 1}, 0, 5, 0), call_of({0, 1}, 4, 7, 0),
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

TEST_CASE("parameters and gradients of shards travel while units compute") {
  // A step gathers each unit twice, but for the last, and scatters it once: 35 messages, which
  // together take 80 % of backward's 12 x 60 ms.
  const double message_s = 0.8 * 12 * 0.060 / 35;
  const auto network = std::make_shared<dist::FakeNetwork>(dist::FakeJob{
      .rank = 1, .world_size = kRanks, .ranks_per_node = 8, .inside = {.latency_s = message_s}});
  dist::Group world(network, at::kCPU);
  const dist::Mesh mesh(world, core::MeshPlan(kRanks, {.pipe = 1, .replica = {}, .shard = kRanks}));
  std::vector<units::NamedParameter> parameters;
  parallel::Sharding sharding{.level = parallel::ShardLevel::kParameters};
  for (std::size_t unit = 0; unit < kUnits; ++unit) {
    const std::string name = "unit" + std::to_string(unit);
    parameters.push_back({name, at::zeros({kElements}).requires_grad_(true)});
    sharding.units.push_back({name});
  }
  parallel::Sharded sharded(std::move(parameters), mesh, sharding);
  sharded.start({});
  step(sharded);

  const std::vector<dist::FakeCall> calls = network->calls();
  CHECK(calls.size() == 3 * kUnits - 1);
  double all_s = 0;
  for (const dist::FakeCall& call : calls) all_s += call.seconds;
  CHECK(all_s == doctest::Approx(0.8 * 12 * 0.060));
  // Nothing hides the first gathering and the last scattering: 2 of 35.
  CHECK(exposed_seconds(calls) > 0);
  CHECK(exposed_seconds(calls) <= 0.15 * all_s);
}

}  // namespace
}  // namespace scaletrain::train
