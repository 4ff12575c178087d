#include "lib/observe/trace/intervals.h"

#include <algorithm>
#include <cstddef>

namespace scaletrain::observe {

TimeIntervals merged(TimeIntervals intervals) {
  std::sort(intervals.begin(), intervals.end(),
            [](const TimeInterval& a, const TimeInterval& b) { return a.begin < b.begin; });
  TimeIntervals result;
  for (const TimeInterval& one : intervals) {
    if (one.end <= one.begin) continue;
    if (result.empty() || one.begin > result.back().end) {
      result.push_back(one);
    } else {
      result.back().end = std::max(result.back().end, one.end);
    }
  }
  return result;
}

std::int64_t total_length(const TimeIntervals& intervals) {
  std::int64_t length = 0;
  for (const TimeInterval& one : intervals) length += one.end - one.begin;
  return length;
}

std::int64_t shared_length(const TimeIntervals& a, const TimeIntervals& b) {
  std::int64_t length = 0;
  for (std::size_t i = 0, k = 0; i < a.size() && k < b.size();) {
    length +=
        std::max<std::int64_t>(0, std::min(a[i].end, b[k].end) - std::max(a[i].begin, b[k].begin));
    if (a[i].end < b[k].end) {
      ++i;
    } else {
      ++k;
    }
  }
  return length;
}

}  // namespace scaletrain::observe
