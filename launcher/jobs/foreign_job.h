// Runs any program as a job, as torchrun does: with its variables, log layout, error files and exit
// code.
#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "launcher/flags/launch_options.h"
#include "launcher/jobs/event_log.h"
#include "launcher/jobs/file_timer.h"
#include "launcher/jobs/job.h"
#include "launcher/output/streams.h"

namespace scaletrain::launcher {

class ForeignJob : public AttemptMaker, public JobEnding, public GroupObserver {
 public:
  // Streams and error files have torchrun's layout in `options.log_dir`, or in a temporary folder
  // if that is "". Throws core::UsageError if the program does not exist or a flag does not fit,
  // and core::StorageError if the folder cannot be created.
  ForeignJob(const LaunchOptions& options, Placement placement);
  // Removes the temporary folder, unless a worker failed and left something there.
  ~ForeignJob() override;
  ForeignJob(const ForeignJob&) = delete;
  ForeignJob& operator=(const ForeignJob&) = delete;

  // Returns the parts of the job, valid as long as this object.
  Job job() { return {.facts = facts_, .rules = rules_, .attempts = *this, .ending = *this}; }

  AttemptPlan plan_attempt(const Attempt& attempt, const StoreSocket& store) override;
  void attempt_ended(const GroupEnd& end, const std::vector<WorkerPlan>& plans) override;

  void started(const WorkerPlan& plan, pid_t pid) override;
  std::optional<Hang> watch(const std::vector<RunningWorker>& running) override;

  int succeeded() override;
  int stopped(const GroupEnd& end) override;
  std::string give_up(const Failure& failure) override;

  // The signal that stopped the job; 0: none.
  int stop_signal() const { return stop_signal_; }

 private:
  GroupOptions group_options(const StoreSocket& store);
  WorkerPlan plan_worker(core::WorkerEnv env);
  void begin_filtered_files() const;
  void choose_stream(WorkerPlan& plan, int descriptor, const StreamChoice& choice,
                     const std::filesystem::path& file);

  std::vector<std::string> program_;
  Placement placement_;
  std::vector<WorkerStreams> streams_;  // indexed by local rank
  std::string role_, run_id_, signals_;
  JobFacts facts_;
  ProgramRules rules_;
  std::chrono::milliseconds hang_timeout_;
  bool beat_from_start_;
  std::optional<HangWatch> watch_;  // watches this attempt's workers
  std::vector<std::string> output_filters_, error_filters_;
  std::vector<std::vector<int>> cpus_;  // indexed by local rank; empty: no binding
  std::unique_ptr<EventLog> events_;    // null: not requested
  std::unique_ptr<FileTimer> timer_;    // null: not requested
  GroupEnd last_end_;                   // for `events_`
  std::vector<WorkerPlan> last_plans_;
  bool virtual_local_rank_;
  bool keep_folder_;
  int stop_signal_ = 0;
  int number_ = -1;                      // number of the current attempt, from 0
  std::filesystem::path folder_;         // <log_dir>/<run_id>_<random8>; "": no files
  std::vector<core::Descriptor> files_;  // open for this attempt's workers
};

}  // namespace scaletrain::launcher
