// Texts of the progress bar and of plain progress lines, as pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lib/core/plan/step_plan.h"
#include "lib/observe/metrics.h"

namespace scaletrain::observe {

struct ProgressGoal {
  std::int64_t total_steps = 0;  // 0: not known (a length in minutes)
  std::int64_t steps_per_epoch = 0;
  std::int64_t epoch_shift = 0;  // steps + epoch_shift: steps in epochs of the present size
  // Set during a batch size ramp-up, where an epoch has more steps at first; must outlive this
  // struct.
  const core::StepPlan* growing = nullptr;
};

// Position of a run; values below 0 are not known yet and left out.
struct ProgressState {
  std::int64_t step = 0;  // counts from 1
  double loss = 0;
  double lr = 0;
  double samples_per_s = -1;
  double data_share = -1;  // share of a step's time spent waiting for data, 0..1
  double left_s = -1;
  double tokens_per_s = -1;  // shown in place of samples_per_s
  double mfu = -1;           // 0..1
};

// Estimates the remaining seconds of a run that took `seconds` from `first_step` to `step`, with
// equal time for each step, or for each sample during a batch size ramp-up.
double seconds_left(ProgressGoal goal, std::int64_t first_step, std::int64_t step, double seconds);

// One line without a newline, at most `width` columns (plain ASCII). On a narrow terminal the least
// important parts are left out, and the bar itself takes the remaining columns.
std::string bar_text(const ProgressState& state, ProgressGoal goal, int width);

// Returns the line of a training record for output that is not a terminal.
std::string train_text(const ProgressState& state, ProgressGoal goal);

// "val: top-1 98.50 %, top-5 100.00 %, loss 0.0812 (200 samples, epoch 10/10, step 430/430)"
std::string eval_text(const EvalRecord& record, ProgressGoal goal);

// "top-1 98.50 %, loss 0.0812"
std::string measures_text(const std::vector<recipe::Measured>& measures);

// "[=====>    ]" of `width` columns, `done` from 0 to 1.
std::string bar(double done, int width);

// "1h 02m", "3m 20s", "12s".
std::string format_duration(double seconds);

}  // namespace scaletrain::observe
