// Reports of rank 0: metrics.jsonl, journal.jsonl, progress, the closing summary. Other ranks write
// nothing.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lib/checkpoint/saver.h"
#include "lib/core/clock.h"
#include "lib/core/job/worker_env.h"
#include "lib/mirror/mirror.h"
#include "lib/observe/journal.h"
#include "lib/observe/line_writer.h"
#include "lib/observe/metrics.h"
#include "lib/observe/progress.h"
#include "lib/observe/slow_causes.h"
#include "lib/observe/stragglers.h"
#include "lib/observe/summary.h"
#include "lib/replica/finish.h"
#include "lib/train/integrity/replica_check.h"
#include "lib/train/loop/evaluate.h"
#include "lib/train/loop/model_flops.h"
#include "lib/train/rules/outcomes.h"
#include "lib/train/rules/straggler_watch.h"
#include "lib/train/run/run.h"
#include "lib/train/run/step.h"

namespace scaletrain::train {

// An anomalous step, with the rank whose evidence explains it.
struct AnomalyReport {
  std::int64_t step = 0;               // from 1
  std::string kind, cause;             // "loss spike"; with values
  std::string policy;                  // of the recipe
  bool taken = false;                  // its gradients were clipped, and the update was made
  int rank = 0;                        // in the group
  std::string unit = {};               // first that was not finite; "": none
  std::vector<std::string> keys = {};  // of the rank's samples, perhaps not all
  std::int64_t samples = 0;            // of the rank
};

class Reporter {
 public:
  // Shows the start block and writes it as start.json beside environment.json, on rank 0. For a run
  // resumed from the checkpoint `resume` it also rewrites recipe.json with the recipe that is
  // trained now. `late`: each line is held back until the next step's result is known.
  Reporter(Run& run, const core::WorkerEnv& env, const std::optional<std::filesystem::path>& resume,
           bool late);
  ~Reporter();

  // FLOPs of steps; begin() and end() are the caller's.
  ModelFlops& flops() { return flops_; }
  // Call after every step, when its result is known and counted in the run's state. `first`: the
  // first step of this process, which is always recorded. Every rank calls it: when a record is
  // due, the ranks reduce their slowest times asynchronously. The line is written at once, or when
  // late by drain().
  void step(const StepResult& result, double seconds, bool first, bool due);
  // Writes the lines that were held back.
  void drain();
  // `model`: training state of the evaluated model.
  void eval(const std::string& split, const EvalResult& result, const format::TrainState& model);
  void saved(const checkpoint::Saved& saved);
  void save_failed(const core::Error& error);
  void mirrored(const mirror::Copied& copied);
  void replicated(std::int64_t step, const replica::Replicated& copies);
  void norms(observe::NormsRecord record);
  void note(const std::string& text);  // a line for a person
  void skipped(const StepResult& result);
  void anomaly(const AnomalyReport& report);
  // Reports that the run has gone back to the checkpoint of `step`; the state counts that.
  void rolled_back(std::int64_t step);
  // Reports a comparison of the replicas that took `seconds`, and their difference, if any.
  void replicas_compared(double seconds, const std::optional<ReplicaDifference>& difference);
  // Reports a matrix product whose checksums are wrong.
  void wrong_product(const std::string& cause);
  // Reports that the run repeats the steps from the present one to `step`.
  void went_back(std::int64_t step);
  void saturated(std::int64_t step, const std::string& warning);
  void lr_reduced();  // by schedule.plateau, after the validation of the current step
  void slow(const SlowRanks& slow);
  // Reports a lost replica: the weights contain its steps up to `step`; `left` replicas remain.
  void lost_replica(int replica, std::int64_t step, std::int64_t left);
  // Writes RUN/finished.json: the run is complete, and a resume has nothing left to do.
  void finished();
  // Writes this rank's time ledger up to now, so that the end of an attempt is complete. On a
  // device, `waits` waits for queued work.
  void end_times(bool waits);
  // Writes the closing summary; `stopped`: reason of an early end, or empty.
  void summary(const std::string& stopped);

 private:
  bool speaks() const { return progress_ != nullptr; }
  // Tokens of each sample of a language model; 0: its samples are no tokens.
  std::int64_t tokens_a_sample() const;
  // Times of the samples of this attempt on this rank.
  observe::RunCosts costs() const;
  observe::TrainRecord record(const StepResult& result) const;
  // This rank's maxima and its row of the ledger, between zeros for the other ranks: their maximum
  // is the ledger of all.
  std::vector<double> window_values();
  // nullopt: it does not change.
  std::optional<std::int64_t> image_size_of(std::int64_t step) const;
  void write(Outcomes<observe::TrainRecord>::Outcome line);
  void write_times(const observe::TrainRecord& record, std::span<const double> ranks);
  void write_event(const std::string& event, const nlohmann::ordered_json& fields);
  void write_start(const std::filesystem::path& path, const std::string& text);
  bool write_file(const std::filesystem::path& path, const std::string& text);
  // Counts a step whose batch had no target; warns at the first one.
  void count_without_targets(const StepResult& result);
  void keep_files();

  Run& run_;
  core::BatchSizes sizes_;
  int attempt_;
  ModelFlops flops_;
  Outcomes<observe::TrainRecord> lines_;  // lines that lack the slowest ranks' times
  std::unique_ptr<observe::MetricsWriter> metrics_;
  std::unique_ptr<observe::RunJournal> journal_;
  std::unique_ptr<observe::LineWriter> console_log_;  // outlives progress_, which writes to it
  std::unique_ptr<observe::Progress> progress_;
  int console_fd_;
  std::map<std::filesystem::path, std::string> files_;  // full text; the run keeps them

  // Since the line before.
  std::int64_t window_steps_ = 0, window_samples_ = 0, window_exchanged_ = 0;
  double window_s_ = 0;
  data::StageTimes window_stages_;
  // Totals of this process.
  std::int64_t own_samples_ = 0;
  std::int64_t empty_steps_ = 0;
  std::int64_t comparisons_ = 0, differences_ = 0;  // of the replicas
  double own_s_ = 0;
  std::int64_t peak_bytes_ = 0;  // of the rank with the highest peak
  observe::RunCosts costs_;      // of this rank, without the stages of `stages_`
  data::StageTimes stages_;
  std::string checkpoint_;
  std::string resume_command_;
  std::optional<observe::RunSummary::Test> test_;
};

}  // namespace scaletrain::train
