#include "lib/observe/trace/span_events.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>

#include "lib/core/text/json_text.h"

namespace scaletrain::observe {
namespace {

using Json = nlohmann::ordered_json;
using core::TraceSpan;

std::string_view kind_text(TraceSpan::Kind kind) {
  switch (kind) {
    case TraceSpan::Kind::kStep:
      return "step";
    case TraceSpan::Kind::kRow:
      return "row";
    case TraceSpan::Kind::kCollective:
      return "collective";
    case TraceSpan::Kind::kThread:
      break;
  }
  return "thread";
}

// Chooses a track for each collective so that those on a track do not overlap.
class CollectiveTracks {
 public:
  std::int64_t track(const TraceSpan& span) {
    auto free = std::find_if(ends_.begin(), ends_.end(),
                             [&](std::int64_t end) { return end <= span.begin_ns; });
    if (free == ends_.end()) free = ends_.insert(free, 0);
    *free = span.end_ns;
    return kFirstCollectiveTrack + (free - ends_.begin());
  }

 private:
  std::vector<std::int64_t> ends_;
};

std::string track_name(std::int64_t track) {
  if (track == kStepTrack) return "steps";
  return track == kRowTrack ? "time ledger" : "collectives";
}

// Kineto's unit: microseconds with three digits after the point, without rounding by a double.
std::string microseconds(std::int64_t nanoseconds) {
  return fmt::format("{}.{:03}", nanoseconds / 1000, nanoseconds % 1000);
}

std::string event_text(const TraceSpan& span, std::int64_t track, std::int64_t base_ns,
                       std::int64_t process) {
  Json arguments{{"scaletrain", kind_text(span.kind)}};
  if (span.kind == TraceSpan::Kind::kCollective) {
    arguments["group"] = span.group;
    arguments["bytes"] = span.bytes;
  }
  return fmt::format(R"({{"ph": "X", "cat": "user_annotation", "name": {}, "pid": {}, "tid": {}, )"
                     R"("ts": {}, "dur": {}, "args": {}}})",
                     core::json_text(Json(span.name)), process, track,
                     microseconds(span.begin_ns - base_ns),
                     microseconds(span.end_ns - span.begin_ns), core::json_text(arguments));
}

}  // namespace

std::vector<std::string> span_events(std::vector<TraceSpan> spans, std::int64_t base_ns,
                                     std::int64_t process) {
  std::stable_sort(spans.begin(), spans.end(),
                   [](const TraceSpan& a, const TraceSpan& b) { return a.begin_ns < b.begin_ns; });
  std::vector<std::string> events;
  std::map<std::int64_t, std::string> tracks;
  CollectiveTracks collectives;
  for (const TraceSpan& span : spans) {
    std::int64_t track = span.thread;
    if (span.kind == TraceSpan::Kind::kStep) track = kStepTrack;
    if (span.kind == TraceSpan::Kind::kRow) track = kRowTrack;
    if (span.kind == TraceSpan::Kind::kCollective) track = collectives.track(span);
    if (track >= kStepTrack) tracks.emplace(track, track_name(track));
    events.push_back(event_text(span, track, base_ns, process));
  }
  for (const auto& [track, name] : tracks) {
    events.push_back(
        fmt::format(R"({{"ph": "M", "name": "thread_name", "pid": {}, "tid": {}, "ts": 0, )"
                    R"("args": {{"name": "{}"}}}})",
                    process, track, name));
  }
  return events;
}

}  // namespace scaletrain::observe
