// A shell command for each event: it gets the payload as JSON on standard input, and the event and
// the run in SCALETRAIN_EVENT and SCALETRAIN_RUN. Its output goes to standard error.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "lib/track/events/event.h"

namespace scaletrain::track {

inline constexpr std::chrono::seconds kCommandLimit{60};

// A command that fails, or takes longer than `limit` and is killed, is an error of write().
std::unique_ptr<EventSink> make_event_command(const std::string& command,
                                              std::chrono::milliseconds limit = kCommandLimit);

}  // namespace scaletrain::track
