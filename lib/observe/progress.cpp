#include "lib/observe/progress.h"

#include <unistd.h>

#include <exception>
#include <utility>

#include "lib/core/log.h"
#include "lib/core/printable.h"
#include "lib/observe/terminal.h"

namespace scaletrain::observe {

namespace {

constexpr double kRedrawSeconds = 0.1;
constexpr int kLineWaitMs = 100;

}  // namespace

Progress::Progress(int fd, ProgressGoal goal, Keep keep)
    : fd_(fd), terminal_(isatty(fd) == 1), goal_(goal), keep_(std::move(keep)) {}

Progress::~Progress() {
  if (!bar_shown_) return;
  try {
    draw();
    offer(fd_, "\n", kLineWaitMs);
  } catch (const std::exception&) {  // out of memory for a line: it cannot be reported either
  }
}

void Progress::train(const TrainRecord& record) {
  advance(record.step, record.loss, record.lr);
  state_.samples_per_s = record.samples_per_s;
  state_.tokens_per_s = record.tokens_per_s.value_or(-1);
  state_.mfu = record.speed ? record.speed->mfu.value_or(-1) : -1;
  const double step_s = record.data_time + record.compute_time;
  state_.data_share = step_s > 0 ? record.data_time / step_s : -1;
  const std::string line = train_text(state_, goal_);
  keep_(line);
  if (terminal_) {
    draw();
  } else {
    offer(fd_, line + "\n", kLineWaitMs);
  }
}

void Progress::tick(std::int64_t step, double loss, double lr) {
  advance(step, loss, lr);
  if (!terminal_) return;
  if (!bar_shown_ || core::seconds_since(drawn_) >= kRedrawSeconds) draw();
}

void Progress::eval(const EvalRecord& record) { note(eval_text(record, goal_)); }

void Progress::note(const std::string& line) {
  const std::string text = core::printable(line), whole = text + "\n";
  keep_(text);
  offer(fd_, bar_shown_ ? "\r\x1b[K" + whole : whole, kLineWaitMs);
  if (bar_shown_) draw();
}

void Progress::advance(std::int64_t step, double loss, double lr) {
  if (first_step_ < 0) {
    first_step_ = step;
    start_ = core::now();
  }
  state_.step = step;
  state_.loss = loss;
  state_.lr = lr;
  // The mean over all steps since the first, validation and saving included.
  if (step > first_step_ && goal_.total_steps > 0) {
    state_.left_s = seconds_left(goal_, first_step_, step, core::seconds_since(start_));
  }
}

void Progress::draw() {
  offer(fd_, "\r" + bar_text(state_, goal_, columns(fd_)) + "\x1b[K", 0);
  drawn_ = core::now();
  bar_shown_ = true;
}

}  // namespace scaletrain::observe
