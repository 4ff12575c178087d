// Spans of our own as events of a Chrome trace, beside the operations that Kineto has recorded.
//
// Each event has the category "user_annotation" and says in `args` what it is: "scaletrain":
// "step", "row", "collective" or "thread". Steps, rows of the time ledger and collectives have
// tracks of their own, because they need not nest with the operations of a thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lib/core/process/trace_spans.h"

namespace scaletrain::observe {

// Thread numbers of our tracks; those of the system are below 2^22. Collectives that overlap are on
// kFirstCollectiveTrack, the next one, and so on.
inline constexpr std::int64_t kStepTrack = 10'000'000, kRowTrack = kStepTrack + 1,
                              kFirstCollectiveTrack = kStepTrack + 2;

// Events as JSON texts, with names of the tracks. `base_ns`: the trace's "baseTimeNanoseconds";
// `process`: the "pid" of its events.
std::vector<std::string> span_events(std::vector<core::TraceSpan> spans, std::int64_t base_ns,
                                     std::int64_t process);

}  // namespace scaletrain::observe
