// Causes of a slow run with their remedies, from its time ledger: rows of the closing summary and
// of `scaletrain explain run`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "lib/observe/run_times.h"

namespace scaletrain::observe {

// Facts about the run that are not in its time ledger.
struct RunCosts {
  double read_s = 0;              // a loader thread's seconds a sample, for each stage
  double decode_s = 0;            // 0 for tokens
  double augment_s = 0;           // likewise
  std::int64_t threads = 0;       // loader threads of a rank; 0: not known
  bool threads_searched = false;  // data.threads is "auto": more threads would gain nothing
  std::int64_t cores = 0;         // usable cores for each rank of the node; 0: not known
  bool saves_async = true;        // checkpoint.async
  std::int64_t image_size = 0;
};

struct SlowCause {
  std::size_t row = 0;  // row number in RunTimes
  std::string text;     // cause, size and remedy
};

// A sentence for each avoidable row that takes at least 2 % of the wall time, the largest first, at
// most four:
//
//   waited for data 62 % of the time, decoding takes 27 ms a sample: raise data.threads from 1 to 3
//   or run `scaletrain data pack --resize 256` once
std::vector<SlowCause> slow_causes(const RunTimes& times, const RunCosts& costs);

// True if the run was long enough for advice on the console: shares of less than 10 s are noise.
bool is_long_enough(const RunTimes& times);

}  // namespace scaletrain::observe
