// Scores the predictions of `scaletrain plan` for the recipe of a finished run.
#pragma once

#include <string>

#include "launcher/commands/plan/prediction.h"
#include "launcher/plan/score.h"
#include "launcher/runs/run_record.h"
#include "lib/recipe/recipe.h"

namespace scaletrain::launcher {

// Reads the recipe of a run. Throws the errors of parsing.
recipe::Recipe recipe_of_run(const RunRecord& run);

// Name of the device that a run has used, as --device takes it; "" if it is not in the table.
std::string device_of_run(const RunRecord& run);

// The ranks and nodes of a run, from its start.json; `device` as --device takes it. Throws
// core::UsageError if start.json does not have them.
PlanTarget target_of_run(const RunRecord& run, const std::string& device);

// Compares `prediction` with the run: the median step time, the peak memory of a rank and the time
// of all attempts. A value that the run did not record has no score.
Score score_run(const RunRecord& run, const PlanTarget& target, const Prediction& prediction);

// "step_s    predicted 0.12  measured 0.11  +9.1 %", a line for each value.
std::string score_text(const Score& score);

}  // namespace scaletrain::launcher
