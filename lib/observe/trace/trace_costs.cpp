#include "lib/observe/trace/trace_costs.h"

#include <algorithm>
#include <cstddef>

namespace scaletrain::observe {

void TraceCosts::add(int trace, const TimedEvent& event) {
  if (event.kind == EventKind::kStep) return;
  const std::size_t index =
      indexes_.try_emplace({event.kind, event.name}, indexes_.size()).first->second;
  tracks_[{trace, event.track}].push_back({event.time, index});
}

std::vector<TraceCost> TraceCosts::rows() const {
  std::vector<TraceCost> rows(indexes_.size());
  for (const auto& [key, index] : indexes_) {
    rows[index].kind = key.first;
    rows[index].name = key.second;
  }
  for (const auto& [key, track] : tracks_) {
    std::vector<Timed> events = track;
    // An event comes before those inside it.
    std::stable_sort(events.begin(), events.end(), [](const Timed& a, const Timed& b) {
      return a.time.begin != b.time.begin ? a.time.begin < b.time.begin : a.time.end > b.time.end;
    });
    std::vector<Timed> open;  // each event inside the previous one
    for (const Timed& event : events) {
      while (!open.empty() && open.back().time.end <= event.time.begin) open.pop_back();
      const std::int64_t length = event.time.end - event.time.begin;
      ++rows[event.index].count;
      rows[event.index].self_ns += length;
      if (!open.empty()) {
        rows[open.back().index].self_ns -=
            std::min(event.time.end, open.back().time.end) - event.time.begin;
      }
      open.push_back(event);
    }
  }
  std::map<EventKind, std::int64_t> sums;
  for (const TraceCost& row : rows) sums[row.kind] += row.self_ns;
  for (TraceCost& row : rows) {
    row.share = static_cast<double>(row.self_ns) /
                static_cast<double>(std::max<std::int64_t>(sums[row.kind], 1));
  }
  std::sort(rows.begin(), rows.end(), [](const TraceCost& a, const TraceCost& b) {
    if (a.kind != b.kind) return a.kind < b.kind;
    return a.self_ns != b.self_ns ? a.self_ns > b.self_ns : a.name < b.name;
  });
  return rows;
}

}  // namespace scaletrain::observe
