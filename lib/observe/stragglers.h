// Finds ranks that are steadily slower than the others, and the cause.
//
// Ranks that all-reduce gradients end a step at the same time, so a rank is judged by its own time:
// waiting for data, computing and writing checkpoints, without the time in collectives, where fast
// ranks wait for the slow one.
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
  const char* phase = "";  // "data", "compute" or "checkpoint": phase with the largest loss
  double seconds = 0;      // seconds a step of this rank, without collectives
  double median = 0;       // median rank's
};

class Stragglers {
 public:
  static constexpr int kWindowSteps = 10;
  static constexpr int kWindows = 3;     // number of consecutive slow windows that counts as steady
  static constexpr double kRatio = 1.4;  // times the median
  static constexpr double kLeastLoss = 5e-3;  // seconds a step; less is noise

  // Adds the times of all ranks in one more window; the number of ranks never changes. Returns the
  // ranks that have now been slow for kWindows windows, each once.
  std::vector<Straggler> add(std::span<const OwnTimes> ranks);

 private:
  std::vector<int> slow_windows_;  // consecutive slow windows, by rank
};

}  // namespace scaletrain::observe
