// Breakdown of time, communication overlap and idle time of one rank, from the spans of its trace.
//
// Tools for GPU traces compute these from kernels, which a CPU trace does not have. Here the rows
// of the time ledger say when the rank computes, and the spans of collectives when it communicates.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "lib/observe/trace/intervals.h"
#include "lib/observe/trace/trace_events.h"

namespace scaletrain::observe {

struct TraceFigures {
  std::int64_t window_ns = 0;                // from the first row's begin to the last row's end
  std::map<std::string, std::int64_t> rows;  // nanoseconds by row of the time ledger
  std::int64_t communication_ns = 0;         // at least one collective is under way
  std::int64_t overlap_ns = 0;               // of these, while the rank computes
  std::int64_t idle_ns = 0;                  // waits for data, a collective or a checkpoint
};

class FiguresOfTrace {
 public:
  void add(const TimedEvent& event);
  TraceFigures figures() const;

 private:
  std::map<std::string, TimeIntervals> rows_;
  TimeIntervals collectives_;
};

}  // namespace scaletrain::observe
