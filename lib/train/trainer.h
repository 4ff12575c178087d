// The loop: train, validate, save, stop. It reads like the recipe and names no concrete model,
// source, optimizer or mode.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "lib/core/worker_env.h"
#include "lib/recipe/recipe.h"
#include "lib/train/bad_samples.h"
#include "lib/train/cadence.h"
#include "lib/train/parts.h"
#include "lib/train/reporter.h"
#include "lib/train/step.h"
#include "lib/train/straggler_watch.h"

namespace scaletrain::train {

class Trainer {
 public:
  // With `resume`, a verified checkpoint, training goes on where that was taken.
  Trainer(recipe::Recipe recipe, const core::WorkerEnv& env,
          const std::optional<std::filesystem::path>& resume, core::Beat beat);

  // Trains to the recipe's end, or until all ranks agree to stop. Returns the exit code: kOk,
  // kTemporary or kInterrupted. Throws core::Error; the newest checkpoint stays as it is.
  core::ExitCode run();

  // Optimizer steps done, for the report of a failure.
  std::int64_t step() const { return parts_.state.step; }

 private:
  StepResult train_step();
  void count_step(const StepResult& result, double seconds);
  // nullopt where a stop cut it short.
  std::optional<EvalResult> evaluate(const std::string& split, data::EvalLoader& loader);
  bool validate();        // whether this is the best so far
  bool validate_saved();  // the same at a step that may be saved: whether to save it again
  void save();
  core::ExitCode finish();
  core::ExitCode stop();

  recipe::Recipe recipe_;
  Parts parts_;
  Reporter reporter_;
  BadSamples bad_samples_;
  StepRunner steps_;
  StragglerWatch stragglers_;
  Cadence log_every_, validate_every_, save_every_;
  std::int64_t saved_step_ = -1, validated_step_ = -1;
  int skipped_in_a_row_ = 0;
  core::StopReason stop_ = core::StopReason::kNone;  // on which all ranks have agreed
  bool first_ = true;
  double seconds_before_ = 0;
};

}  // namespace scaletrain::train
