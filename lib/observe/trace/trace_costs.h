// Operations, kernels and spans of traces by the time that they cost.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "lib/observe/trace/trace_events.h"

namespace scaletrain::observe {

struct TraceCost {
  EventKind kind = EventKind::kOperation;
  std::string name = {};
  std::int64_t count = 0;
  std::int64_t self_ns = 0;  // without the events inside it on the same thread
  double share = 0;          // of the self time of all events of its kind
};

class TraceCosts {
 public:
  // Adds an event of the trace with number `trace`; steps are left out.
  void add(int trace, const TimedEvent& event);

  // Rows of each kind, the largest self time first.
  std::vector<TraceCost> rows() const;

 private:
  struct Timed {
    TimeInterval time;
    std::size_t index = 0;  // value in indexes_
  };
  std::map<std::pair<EventKind, std::string>, std::size_t> indexes_;
  std::map<std::pair<int, std::string>, std::vector<Timed>> tracks_;
};

}  // namespace scaletrain::observe
