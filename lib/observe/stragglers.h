// Finds ranks that are steadily slower than the others, and the cause.
//
// Ranks that exchange gradients all end a step at the same time, so what counts is a rank's own
// time: waiting for data, computing, writing checkpoints, and not the time in collectives, where
// the fast ones wait for the slow one.
#pragma once

#include <span>
#include <vector>

namespace scaletrain::observe {

// One rank's own seconds a step, over a window of steps.
struct OwnTimes {
  double data = 0, compute = 0, checkpoint = 0;
  double total() const { return data + compute + checkpoint; }
};

struct Straggler {
  int rank = 0;
  const char* phase = "";  // "data", "compute" or "checkpoint": where it loses most
  double seconds = 0;      // its own time a step
  double median = 0;       // median rank's
};

class Stragglers {
 public:
  static constexpr int kWindowSteps = 10;
  static constexpr int kWindows = 3;          // in a row: steadily
  static constexpr double kRatio = 1.4;       // times the median
  static constexpr double kLeastLoss = 5e-3;  // seconds a step; less is noise

  // The times of all ranks in one more window; always of the same number of ranks. The result: the
  // ranks that have now been slow for kWindows windows, each reported once.
  std::vector<Straggler> add(std::span<const OwnTimes> ranks);

 private:
  std::vector<int> slow_windows_;  // in a row, by rank
};

}  // namespace scaletrain::observe
