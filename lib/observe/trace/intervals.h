// Sets of time intervals: length, union and intersection.
#pragma once

#include <cstdint>
#include <vector>

namespace scaletrain::observe {

struct Interval {
  std::int64_t begin = 0, end = 0;  // nanoseconds
};
// In order and without overlap, as merged() returns them.
using Intervals = std::vector<Interval>;

// Union of intervals in any order.
Intervals merged(Intervals intervals);
std::int64_t total_length(const Intervals& intervals);
// Length of the intersection of two unions.
std::int64_t shared_length(const Intervals& a, const Intervals& b);

}  // namespace scaletrain::observe
