// Causes of a slow run with their remedies, from what the run measured: rows of the closing
// summary.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace scaletrain::observe {

// Measurements of one attempt, without its first step.
struct RunCosts {
  double seconds = 0;        // wall time of the steps
  double data_s = 0;         // time that steps waited for data
  double saving_s = 0;       // additional time that training waited for checkpoints
  double read_s = 0;         // a loader thread's seconds a sample, for each stage
  double decode_s = 0;       // 0 for tokens
  double augment_s = 0;      // likewise
  std::int64_t threads = 1;  // loader threads of a rank
  std::int64_t cores = 1;    // usable cores for each rank of the node
  bool saves_async = true;   // checkpoint.async
  std::int64_t image_size = 0;
};

// A sentence for each rule that applies, with cause, size and remedy; empty for attempts of less
// than 10 s, whose shares are noise:
//
//   waited for data 62 % of the time, decoding takes 27 ms a sample: raise data.threads from 1 to 3
//   or run `scaletrain data pack --resize 256` once
std::vector<std::string> slow_causes(const RunCosts& costs);

}  // namespace scaletrain::observe
