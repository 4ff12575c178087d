#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include <chrono>
#include <thread>
#include <vector>

#include "lib/parallel/data_parallel.h"
#include "lib/parallel/layout.h"
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
  parallel::ShardingOptions sharding{.level = level};
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

// That little of so many messages, 80 % of backward together, is waited for. Nothing hides the last
// one, nor the first gathering.
void check_hidden(const std::vector<dist::FakeCall>& calls, std::size_t messages) {
  CHECK(calls.size() == messages);
  double all_s = 0;
  for (const dist::FakeCall& call : calls) all_s += call.seconds;
  CHECK(all_s == doctest::Approx(kExchanges));
  CHECK(exposed_seconds(calls) > 0);
  CHECK(exposed_seconds(calls) <= 0.15 * all_s);
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
    check_hidden(calls_of_step(one.level, one.messages), one.messages);
  }
}

// The matrices of GPT-2 blocks of this width, 81 MB, in the order of their use.
std::vector<at::Tensor> matrices(std::int64_t width) {
  std::vector<at::Tensor> result;
  for (std::size_t unit = 0; unit < kUnits; ++unit) {
    for (const std::int64_t times : {3, 1, 4, 4}) {
      result.push_back(at::empty({times * width, width}));
    }
  }
  return result;
}

TEST_CASE("gradients of copies travel while units compute") {
  // Small ones travel, at a speed in proportion.
  constexpr std::int64_t kWidth = 384, kSmallWidth = 24;
  const parallel::BucketLayout layout = parallel::make_layout(matrices(kWidth));
  const std::vector<at::Tensor> small = matrices(kSmallWidth);
  std::vector<units::NamedParameter> parameters;
  std::int64_t bytes = 0;
  for (const at::Tensor& one : small) {
    bytes += static_cast<std::int64_t>(one.nbytes());
    parameters.push_back({"", one.zero_().requires_grad_(true)});
  }
  const double sent = dist::sent_bytes(dist::FakeKind::kAllReduce, bytes, kRanks);
  const auto network = std::make_shared<dist::FakeNetwork>(
      dist::FakeJob{.rank = 1,
                    .world_size = kRanks,
                    .ranks_per_node = 8,
                    .inside = {.bytes_per_s = sent / kExchanges}});
  dist::Group world(network, at::kCPU);
  const dist::Mesh mesh(world, core::MeshPlan(kRanks, {.pipe = 1, .replica = {}, .shard = 1}));
  parallel::DataParallel copies(parameters, mesh);
  copies.start(layout);
  const std::size_t before = network->count();
  copies.begin_micro_step(true);
  at::Tensor flow = at::zeros({});
  for (std::size_t first = 0; first < small.size(); first += 4) {
    const at::Tensor unit = small[first].sum() + small[first + 1].sum() + small[first + 2].sum() +
                            small[first + 3].sum();
    flow = flow + unit;
    flow.register_hook([](const at::Tensor&) { std::this_thread::sleep_for(kBackward); });
  }
  copies.prepare_backward(flow);
  flow.backward();
  const std::vector<dist::FakeCall> calls = network->calls();
  check_hidden({calls.begin() + static_cast<std::ptrdiff_t>(before), calls.end()}, layout.size());
}

}  // namespace
}  // namespace scaletrain::train
