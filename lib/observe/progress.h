// What a person watches: a bar that redraws itself on a terminal, plain lines elsewhere.
#pragma once

#include <cstdint>
#include <string>

#include "lib/core/clock.h"
#include "lib/observe/metrics.h"

namespace scaletrain::observe {

struct ProgressGoal {
  std::int64_t total_steps = 0;      // 0: not known (a length in minutes)
  std::int64_t steps_per_epoch = 0;
};

class Progress {
 public:
  // Writes to `fd`: a bar where it is a terminal, one line for each record elsewhere.
  Progress(int fd, ProgressGoal goal);
  ~Progress();  // ends a bar's line

  void train(const TrainRecord& record);  // every record of metrics.jsonl
  void tick(std::int64_t step, double loss, double lr);  // every step; redraws at most 10 a second
  void eval(const EvalRecord& record);
  void note(const std::string& line);     // a whole line above the bar

 private:
  int fd_;
  bool terminal_ = false;
  ProgressGoal goal_;
  TrainRecord last_;
  core::SteadyTime start_, drawn_;
  std::int64_t first_step_ = -1;
  bool bar_shown_ = false;
};

// "1h 02m", "3m 20s", "12s".
std::string format_duration(double seconds);

}  // namespace scaletrain::observe
