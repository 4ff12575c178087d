// Progress display: a bar that redraws itself on a terminal, plain lines elsewhere.
//
// Nothing here stops or delays the training: output that cannot be written (closed, full, a
// terminal that was stopped) is dropped. SIGPIPE must be ignored (core::install_stop_handlers).
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "lib/core/clock.h"
#include "lib/observe/metrics.h"
#include "lib/observe/progress_text.h"

namespace scaletrain::observe {

class Progress {
 public:
  // Receives a line without its newline, for a file.
  using Keep = std::function<void(const std::string&)>;

  // Writes to `fd`, which the caller owns: a bar on a terminal, otherwise one line for each record.
  // `keep` receives every complete line (records on a terminal too) and no bar.
  Progress(
      int fd, ProgressGoal goal, Keep keep = [](const std::string&) {});
  ~Progress();  // draws the last state and ends the line of the bar
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void train(const TrainRecord& record);                 // every record of metrics.jsonl
  void tick(std::int64_t step, double loss, double lr);  // every step; redraws at most 10 a second
  void eval(const EvalRecord& record);
  void note(const std::string& line);  // writes a line above the bar

 private:
  void advance(std::int64_t step, double loss, double lr);
  void draw();

  int fd_;
  bool terminal_;
  ProgressGoal goal_;
  Keep keep_;
  ProgressState state_;
  core::SteadyTime start_, drawn_;
  std::int64_t first_step_ = -1;
  bool bar_shown_ = false;
};

}  // namespace scaletrain::observe
