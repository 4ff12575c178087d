#include "lib/train/simulate/fake_run.h"

#include <algorithm>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "lib/core/clock.h"
#include "lib/train/simulate/fake_rank.h"

namespace scaletrain::train {
namespace {

FakeStep sums_of(double seconds, std::span<const dist::FakeCall> calls) {
  FakeStep one{.seconds = seconds, .exposed_s = exposed_seconds(calls)};
  for (const dist::FakeCall& call : calls) {
    one.exchange_s += call.seconds;
    one.bytes += call.bytes;
    ++one.calls;
  }
  return one;
}

}  // namespace

double exposed_seconds(std::span<const dist::FakeCall> calls) {
  struct OfGroup {
    double waited = 0;
    const dist::FakeCall* last = nullptr;
  };
  std::map<std::vector<int>, OfGroup> groups;
  for (const dist::FakeCall& call : calls) {
    OfGroup& group = groups[call.ranks];
    group.waited += call.waited_s;
    group.last = &call;
  }
  double seconds = 0;
  for (const auto& [ranks, group] : groups) {
    const auto rest = std::chrono::duration<double>(group.last->done - group.last->asked);
    seconds += group.waited > 0 ? group.waited : rest.count();
  }
  return seconds;
}

FakeStep measure_fake(recipe::Recipe recipe, const dist::FakeJob& job, std::int64_t steps,
                      const nn::Factories& models) {
  const auto network = std::make_shared<dist::FakeNetwork>(job);
  FakeRank rank(std::move(recipe), network, models);
  rank.take_step(0);
  std::vector<double> seconds;
  std::vector<std::size_t> begin{network->count()};  // first call of each step
  for (std::int64_t step = 1; step <= steps; ++step) {
    const core::SteadyTime start = core::now();
    rank.take_step(step);
    seconds.push_back(core::seconds_since(start));
    begin.push_back(network->count());
  }
  rank.run().engine->settle();
  // Read only now, since a step waits for communication that the previous one has started.
  const std::vector<dist::FakeCall> calls = network->calls();
  std::vector<FakeStep> all;
  for (std::size_t i = 0; i < seconds.size(); ++i) {
    const auto its = std::span(calls).subspan(begin[i], begin[i + 1] - begin[i]);
    all.push_back(sums_of(seconds[i], its));
  }
  rank.run().mesh->end("the measurement");
  const auto middle = all.begin() + static_cast<std::ptrdiff_t>(all.size() / 2);
  std::nth_element(all.begin(), middle, all.end(),
                   [](const FakeStep& a, const FakeStep& b) { return a.seconds < b.seconds; });
  return *middle;
}

}  // namespace scaletrain::train
