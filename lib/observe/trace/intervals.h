// Sets of time intervals: length, union and intersection.
#pragma once

#include <cstdint>
#include <vector>

namespace scaletrain::observe {

struct TimeInterval {
  std::int64_t begin = 0, end = 0;  // nanoseconds
};
// In order and without overlap, as merged() returns them.
using TimeIntervals = std::vector<TimeInterval>;

// Union of intervals in any order.
TimeIntervals merged(TimeIntervals intervals);
std::int64_t total_length(const TimeIntervals& intervals);
// Length of the intersection of two unions.
std::int64_t shared_length(const TimeIntervals& a, const TimeIntervals& b);

}  // namespace scaletrain::observe
