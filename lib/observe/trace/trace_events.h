// Timed events of a Chrome trace as the analyses of traces need them.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "lib/observe/trace/intervals.h"

namespace scaletrain::observe {

// Kinds of events, by their category and by `args` of our own spans (span_events.h).
enum class EventKind : std::uint8_t { kStep, kRow, kCollective, kSpan, kOperation, kKernel };
// "row", "collective", "span", "operation", "kernel".
const char* to_text(EventKind kind);

struct TimedEvent {
  EventKind kind = EventKind::kSpan;
  std::string name = {};
  std::string track = {};     // process and thread
  std::int64_t process = -1;  // -1: its "pid" is no number
  TimeInterval time = {};     // nanoseconds since the trace's base
};

// nullopt: the event has no duration, or describes the trace itself.
std::optional<TimedEvent> timed_event(const nlohmann::json& event);

}  // namespace scaletrain::observe
