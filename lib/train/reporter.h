// What rank 0 tells: metrics.jsonl, progress, the closing summary. On other ranks it is silent.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "lib/core/clock.h"
#include "lib/core/worker_env.h"
#include "lib/observe/metrics.h"
#include "lib/observe/progress.h"
#include "lib/observe/stragglers.h"
#include "lib/observe/summary.h"
#include "lib/recipe/recipe.h"
#include "lib/train/cadence.h"
#include "lib/train/evaluate.h"
#include "lib/train/parts.h"
#include "lib/train/step.h"

namespace scaletrain::train {

class Reporter {
 public:
  // Rank 0 writes environment.json into the run's folder, and for a run that goes on from the
  // checkpoint `resume` recipe.json anew: what is trained now, all of which could be loaded.
  Reporter(const recipe::Recipe& recipe, const core::WorkerEnv& env, Parts& parts,
           const std::optional<std::filesystem::path>& resume);
  ~Reporter();

  // After every step; `state` already counts it. `first`: the first step of this process, which is
  // always recorded. Collective where a record is due: every rank calls it.
  void step(const StepResult& result, double lr, double seconds, bool first, bool due);
  void eval(const std::string& split, const EvalResult& result);
  void saved(const std::filesystem::path& checkpoint, double seconds);
  void skipped(const StepResult& result);
  void straggler(const observe::Straggler& slow);
  // RUN/finished.json: this run is done, and a resume has nothing left to do.
  void finished();
  // The last lines; `stopped` says why it ended early, empty where it did not.
  void summary(const std::string& stopped);

 private:
  bool speaks() const { return progress_ != nullptr; }
  std::int64_t last_epoch() const;  // of the step just done

  const recipe::Recipe& recipe_;
  int attempt_;
  Parts& parts_;
  std::unique_ptr<observe::MetricsWriter> metrics_;
  std::unique_ptr<observe::Progress> progress_;
  int console_fd_;

  // Since the line before.
  std::int64_t window_steps_ = 0;
  double window_s_ = 0, window_data_s_ = 0;
  data::StageTimes window_stages_;
  // Of this process.
  std::int64_t own_steps_ = 0;
  double own_s_ = 0;
  std::string checkpoint_;
  std::optional<observe::RunSummary::Test> test_;
};

}  // namespace scaletrain::train
