#include "lib/core/plan/allocation_replay.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace scaletrain::core {
namespace {

bool have_same_events(const AllocationTrace& a, const AllocationTrace& b) {
  return a.held.size() == b.held.size() &&
         std::equal(a.events.begin(), a.events.end(), b.events.begin(), b.events.end(),
                    [](const AllocationEvent& one, const AllocationEvent& other) {
                      return one.kind == other.kind && (one.bytes > 0) == (other.bytes > 0);
                    });
}

}  // namespace

std::optional<std::vector<std::int64_t>> replayed_peak(const AllocationTrace& small,
                                                       const AllocationTrace& large,
                                                       std::int64_t samples) {
  const std::int64_t apart = large.samples - small.samples;
  if (!have_same_events(small, large) || (apart == 0 && samples != small.samples)) {
    return std::nullopt;
  }
  const double times =
      apart == 0 ? 0 : static_cast<double>(samples - small.samples) / static_cast<double>(apart);
  const auto at_samples = [times](std::int64_t a, std::int64_t b) {
    return a + std::llround(times * static_cast<double>(b - a));
  };
  std::vector<std::int64_t> live;
  for (std::size_t kind = 0; kind < small.held.size(); ++kind) {
    live.push_back(at_samples(small.held[kind], large.held[kind]));
  }
  std::vector<std::int64_t> peak = live;
  std::int64_t total = std::accumulate(live.begin(), live.end(), std::int64_t{0});
  std::int64_t highest = total;
  for (std::size_t i = 0; i < small.events.size(); ++i) {
    const std::int64_t bytes = at_samples(small.events[i].bytes, large.events[i].bytes);
    live.at(small.events[i].kind) += bytes;
    total += bytes;
    if (total <= highest) continue;
    highest = total;
    peak = live;
  }
  return peak;
}

}  // namespace scaletrain::core
