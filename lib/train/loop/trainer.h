// The loop: train, validate, save, stop. It reads like the recipe and names no concrete model,
// source, optimizer or mode.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "lib/core/job/worker_env.h"
#include "lib/recipe/recipe.h"
#include "lib/train/loop/anomalies.h"
#include "lib/train/loop/evaluate.h"
#include "lib/train/loop/histograms.h"
#include "lib/train/loop/integrity.h"
#include "lib/train/loop/norms.h"
#include "lib/train/loop/pictures.h"
#include "lib/train/loop/reporter.h"
#include "lib/train/loop/saves.h"
#include "lib/train/loop/trace_requests.h"
#include "lib/train/rules/bad_samples.h"
#include "lib/train/rules/cadence.h"
#include "lib/train/rules/profile.h"
#include "lib/train/rules/straggler_watch.h"
#include "lib/train/run/run.h"
#include "lib/train/run/step.h"
#include "lib/units/memory_meter.h"

namespace scaletrain::train {

class Trainer {
 public:
  // `models` makes the recipe's model. With `resume`, a verified checkpoint, training continues
  // from it. `before_decoupling`: lib/train/build/build.h.
  Trainer(recipe::Recipe recipe, const core::WorkerEnv& env,
          const std::optional<std::filesystem::path>& resume, core::Beat beat,
          const nn::Factories& models = nn::built_in_factories(),
          const std::function<void()>& before_decoupling = nullptr);
  // Trains an existing run. `late`: a step's result is read after the next step is queued. By
  // default true on a device, where the host must not wait, and false on a CPU.
  Trainer(std::unique_ptr<Run> run, const core::WorkerEnv& env,
          const std::optional<std::filesystem::path>& resume,
          std::optional<bool> late = std::nullopt);

  // Trains to the recipe's end, or until all ranks agree to stop. Returns the exit code: kOk,
  // kTemporary or kInterrupted. Throws core::Error; the newest checkpoint stays as it is. When
  // memory runs out, throws core::OutOfMemoryError with advice (memory_advice.h).
  core::ExitCode run();

  // Optimizer steps done, for the report of a failure.
  std::int64_t step() const { return run_->state.step; }

 private:
  StepParts parts_of_steps();
  core::ExitCode train();
  // The first one is measured, for the advice where memory runs out.
  void train_step();
  bool goes_on();
  local_sgd::StateRequest request_for(bool validates, bool saves) const;
  void record_membership();
  void take_step();  // queues a step and processes the results of earlier ones
  void collect(const StepResult& result);  // counts a step whose result is known
  void drain();                            // collects all queued results
  void report_late();                      // reports the records held back after an earlier step
  // Evaluates `split` with the model or its EMA or SWA weights; nullopt if interrupted. `model`:
  // training progress of the model that is evaluated.
  std::optional<EvalResult> measure(task::Split split, const optim::Mean* mean,
                                    const format::TrainState& model);
  // Evaluates the model and its averages; returns the result that chooses the best checkpoint.
  std::optional<EvalResult> measure_all(task::Split split);
  bool look_at_extra();                            // evaluates data.extra; false if interrupted
  bool validate();                                 // true if the result is kept among the best
  bool rank_validation(const EvalResult& result);  // true if kept among the best
  bool validate_saved();  // validates a step that may be saved; true: save it again
  bool test();            // false if a stop interrupted it
  core::ExitCode finish();
  core::ExitCode stop();

  std::unique_ptr<Run> run_;
  const bool late_;
  const double grace_s_;           // seconds from a stop to a kill
  const bool evaluates_;           // false in decoupled replicas other than rank 0's
  const recipe::Measure best_by_;  // measure that chooses the best checkpoint
  const core::BatchSizes sizes_;
  Reporter reporter_;
  BadSamples bad_samples_;
  Pictures pictures_;
  HistogramWriter histograms_;
  NormWriter norms_;
  StepRunner steps_;
  Anomalies anomalies_{*run_, reporter_, steps_};
  Integrity integrity_{*run_, reporter_};
  Profile profile_{run_->recipe.profile,
                   run_->group->device(),
                   {run_->group->job_rank(), run_->group->world_size(), run_->group->exchange()},
                   std::filesystem::path(run_->recipe.output) / "profile",
                   [this](const std::string& text) { reporter_.note(text); }};
  TraceRequests trace_requests_{run_->recipe.output, /*leads=*/run_->group->job_rank() == 0};
  StragglerWatch stragglers_;
  Cadence log_every_, validate_every_;
  Saves saves_;
  std::int64_t validated_step_ = -1;
  bool validates_ = false, saves_now_ = false;  // due after the next synchronization
  bool save_asked_ = false;  // rank 0 has requested a checkpoint since the last one
  const std::vector<std::vector<std::int64_t>> lost_before_;  // positions, before this process
  std::set<int> lost_replicas_;                               // lost in this process, reported
  core::StopReason stop_ = core::StopReason::kNone;           // on which all ranks have agreed
  std::optional<core::SteadyTime> stopping_since_;
  bool first_ = true;
  double seconds_ = 0;  // training time by rank 0's clock, of the newest step whose result is known
  std::shared_ptr<units::MemoryMeter> first_memory_;  // memory of the first step; null before
  double busy_s_ = 0;  // spent on steps since the newest result was known
};

}  // namespace scaletrain::train
