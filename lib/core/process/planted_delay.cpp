#include "lib/core/process/planted_delay.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <thread>
#include <utility>

#include "lib/core/error.h"
#include "lib/core/text/text.h"

namespace scaletrain::core {
namespace {

constexpr std::array<std::pair<std::string_view, DelayPlace>, kDelayPlaces> kDelayKinds{
    {{"slow-start", DelayPlace::kStart},
     {"slow-batch", DelayPlace::kBatch},
     {"slow-copy", DelayPlace::kCopy},
     {"slow-forward", DelayPlace::kForward},
     {"slow-backward", DelayPlace::kBackward},
     {"slow-optimizer", DelayPlace::kOptimizer},
     {"slow-collective", DelayPlace::kCollective},
     {"slow-evaluation", DelayPlace::kEvaluation},
     {"slow-checkpoint", DelayPlace::kCheckpoint}}};

// Delays of this process, with the number of visits to each place and the time that was slept there
// too long: a busy machine wakes a thread some milliseconds late.
struct PlantedDelays {
  std::vector<PlantedDelay> own;
  std::array<std::atomic<std::int64_t>, kDelayPlaces> visits{};
  std::array<std::atomic<std::int64_t>, kDelayPlaces> late_ns{};

  PlantedDelays() {
    const char* const rank = std::getenv("RANK");
    const auto own_rank = parse_number<int>(rank == nullptr ? "0" : rank).value_or(0);
    for (const std::string& fault : planted_faults()) {
      const std::optional<PlantedDelay> delay = parse_delay(fault);
      if (delay && delay->rank.value_or(own_rank) == own_rank) own.push_back(*delay);
    }
  }
};

// Sleeps for `planned` less what earlier sleeps were too long by, so that many delays together last
// as long as planned.
void sleep_as_planned(std::chrono::nanoseconds planned, std::atomic<std::int64_t>& late_ns) {
  const std::chrono::nanoseconds rest = planned - std::chrono::nanoseconds(late_ns.exchange(0));
  const auto begin = std::chrono::steady_clock::now();
  if (rest.count() > 0) std::this_thread::sleep_for(rest);
  const std::chrono::nanoseconds slept = std::chrono::steady_clock::now() - begin;
  late_ns += (slept - rest).count();
}

}  // namespace

std::vector<std::string> planted_faults() {
  std::vector<std::string> faults;
  const char* const text = std::getenv("SCALETRAIN_FAULT");
  std::string_view rest = text == nullptr ? "" : text;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find(';'), rest.size());
    faults.emplace_back(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return faults;
}

std::optional<PlantedDelay> parse_delay(std::string_view fault) {
  const std::size_t at = std::min(fault.find_first_of("@="), fault.size());
  for (const auto& [name, place] : kDelayKinds) {
    if (fault.substr(0, at) != name) continue;
    const std::size_t equals = std::min(fault.find('='), fault.size());
    const std::string_view where = fault.substr(0, equals).substr(std::min(at + 1, equals));
    const std::size_t comma = std::min(where.find(','), where.size());
    const bool has_rank = comma < where.size();
    const auto first = parse_number<std::int64_t>(where.substr(0, comma));
    const auto rank = has_rank ? parse_number<int>(where.substr(comma + 1)) : std::optional<int>();
    const auto milliseconds =
        parse_number<std::int64_t>(fault.substr(std::min(equals + 1, fault.size())));
    if (!first || *first < 1 || has_rank != rank.has_value() || !milliseconds ||
        *milliseconds < 0) {
      throw UsageError("SCALETRAIN_FAULT", fmt::format("\"{}\" is not a delay", fault),
                       "use KIND@NUMBER=MILLISECONDS or KIND@NUMBER,RANK=MILLISECONDS; "
                       "lib/core/process/planted_delay.h lists the kinds");
    }
    return PlantedDelay{
        .place = place, .first = *first, .rank = rank, .milliseconds = *milliseconds};
  }
  return std::nullopt;
}

void delay_if_planted(DelayPlace place) {
  static PlantedDelays delays;
  if (delays.own.empty()) return;
  const auto slot = static_cast<std::size_t>(place);
  const std::int64_t visit = ++delays.visits[slot];
  for (const PlantedDelay& delay : delays.own) {
    if (delay.place != place || visit < delay.first) continue;
    sleep_as_planned(std::chrono::milliseconds(delay.milliseconds), delays.late_ns[slot]);
  }
}

}  // namespace scaletrain::core
