#include "lib/observe/stragglers.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

namespace scaletrain::observe {
namespace {

constexpr int kReported = std::numeric_limits<int>::min();

// The lower one of an even number: of two ranks the faster is the measure.
template <class Time>
double median(std::span<const OwnTimes> ranks, const Time& time) {
  std::vector<double> values;
  values.reserve(ranks.size());
  for (const OwnTimes& rank : ranks) values.push_back(time(rank));
  const auto middle = values.begin() + (static_cast<std::ptrdiff_t>(values.size()) - 1) / 2;
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// Returns the phase in which `own` loses most against the median rank.
const char* slow_phase(const OwnTimes& own, std::span<const OwnTimes> ranks) {
  const std::array<std::pair<const char*, double OwnTimes::*>, 3> phases{
      {{"data", &OwnTimes::data},
       {"compute", &OwnTimes::compute},
       {"checkpoint", &OwnTimes::checkpoint}}};
  const auto loss = [&](double OwnTimes::*time) {
    return own.*time - median(ranks, [&](const OwnTimes& rank) { return rank.*time; });
  };
  return std::max_element(
             phases.begin(), phases.end(),
             [&](const auto& a, const auto& b) { return loss(a.second) < loss(b.second); })
      ->first;
}

}  // namespace

std::vector<Straggler> Stragglers::add(std::span<const OwnTimes> ranks) {
  std::vector<Straggler> result;
  slow_windows_.resize(ranks.size());
  const double middle = median(ranks, [](const OwnTimes& rank) { return rank.total(); });
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    int& windows = slow_windows_[i];
    if (windows == kReported) continue;
    const double own = ranks[i].total();
    const bool slow = own > kRatio * middle && own - middle > kLeastLoss;
    windows = slow ? windows + 1 : 0;
    if (windows < kWindows) continue;
    windows = kReported;
    result.push_back({.rank = static_cast<int>(i),
                      .phase = slow_phase(ranks[i], ranks),
                      .seconds = own,
                      .median = middle});
  }
  return result;
}

}  // namespace scaletrain::observe
