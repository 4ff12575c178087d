// Adds events to a Chrome trace that Kineto has written, without parsing the events in it.
#pragma once

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <string>
#include <vector>

namespace scaletrain::observe {

// Copies the trace in `from` to `to` with more events, which `events_for` makes for the trace's
// "baseTimeNanoseconds". Returns false if `from` is not a Kineto trace or a stream fails.
bool add_events(std::istream& from, std::ostream& to,
                const std::function<std::vector<std::string>(std::int64_t base_ns)>& events_for);

}  // namespace scaletrain::observe
