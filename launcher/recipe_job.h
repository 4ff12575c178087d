// A recipe as a job: its run's folder, its workers, and what a failure means for it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "launcher/job.h"
#include "launcher/nccl_recorder.h"
#include "launcher/node_status.h"
#include "launcher/run_request.h"
#include "lib/core/lease.h"

namespace scaletrain::launcher {

class RecipeJob : public Job {
 public:
  // Checks everything that can be wrong before anything is written: batch, sources, devices,
  // worker, the run's folder. Of `options` --worker, --hang-timeout and
  // --numa-binding. Throws core::Error.
  RecipeJob(RunRequest request, Placement placement, const LaunchOptions& options);

  // Makes the run's folder and takes its lease. A status to exit with where nothing is left to do:
  // the run is finished. Throws core::UsageError (another job owns it) or core::StorageError.
  std::optional<int> open_run_folder();

  std::string make_plan(const Attempt& attempt) override;
  std::vector<WorkerPlan> plan_attempt(const Attempt& attempt, const StoreSocket& store) override;
  std::string name() const override { return request_.recipe.name; }
  bool fits(int nodes) const override;
  std::filesystem::path journal_folder() const override { return output_ / "logs" / "agents"; }
  GroupOptions group_options(const StoreSocket& store) override;
  int succeeded() override { return 0; }
  bool worth_restart(const Failure& failure) const override;
  int exit_status(const Failure& failure) const override { return failure.status.shell_code(); }
  int stopped_status(const GroupEnd& end) const override;
  bool failed_while_stopping(const WorkerEnd& end) const override;
  std::string give_up(const Failure& failure) override;

 private:
  bool check_run_folder() const;
  std::filesystem::path attempt_folder() const;
  std::optional<Hang> watch(const std::vector<RunningWorker>& running);
  std::filesystem::path named_checkpoint() const;
  std::optional<std::filesystem::path> checkpoint_to_load(bool first) const;
  void own_run_folder(bool first);
  std::string resume_command() const;
  // `local_rank` counts this launcher's workers; a task of Slurm's has one, whatever it is told.
  WorkerPlan plan_worker(core::WorkerEnv env, int local_rank, const StoreSocket& store,
                         const std::vector<std::string>& arguments);

  RunRequest request_;
  Placement placement_;
  std::string worker_;
  std::chrono::milliseconds hang_timeout_;
  std::vector<std::vector<int>> cpus_;  // by local rank; empty: no binding
  std::filesystem::path output_;
  bool may_be_finished_ = false;
  int attempt_ = 0;
  std::unique_ptr<core::Lease> lease_;
  core::Descriptor recipe_, console_, nothing_;
  core::Pipe lifeline_;
  // Of the attempt under way.
  std::vector<core::Descriptor> logs_;
  std::optional<HangWatch> watch_;
  std::optional<NodeStatus> status_;
  std::optional<NcclRecorder> recorder_;  // on GPUs
};

}  // namespace scaletrain::launcher
