// Runs a recipe as a job: its run folder, its workers, and the meaning of failures.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "launcher/jobs/checks/run_request.h"
#include "launcher/jobs/job.h"
#include "launcher/jobs/metrics_export.h"
#include "launcher/jobs/nccl_recorder.h"
#include "launcher/jobs/node_memory.h"
#include "launcher/jobs/node_status.h"
#include "launcher/jobs/replicas.h"
#include "lib/core/disk/lease.h"
#include "lib/observe/journal.h"

namespace scaletrain::launcher {

class RecipeJob : public AttemptMaker, public JobEnding {
 public:
  // Checks batch, sources, devices, worker and run folder before anything is written. Reads
  // --hang-timeout and --numa-binding from `options`. Throws core::Error.
  RecipeJob(RunRequest request, Placement placement, const LaunchOptions& options);
  RecipeJob(const RecipeJob&) = delete;
  RecipeJob& operator=(const RecipeJob&) = delete;

  // Creates the run's folder and takes its lease. Returns an exit status if the run is already
  // finished. Throws core::UsageError (another job owns it) or core::StorageError.
  std::optional<int> open_run_folder();

  // Returns the parts of the job, valid as long as this object.
  Job job() { return {.facts = facts_, .rules = rules_, .attempts = *this, .ending = *this}; }

  std::string memory(const std::vector<std::string>& addresses) override;
  std::string make_plan(const Attempt& attempt) override;
  AttemptPlan plan_attempt(const Attempt& attempt, const StoreSocket& store) override;
  std::vector<int> hear_lost(const std::vector<LostReplica>& lost) override;
  std::vector<int> lost_with(int node) const override { return replicas_.on_node(node); }
  bool is_done() const override;
  void attempt_ended(const GroupEnd& end, const std::vector<WorkerPlan>& plans) override;
  void attempt_judged(const std::optional<Failure>& failure, const std::string& restart) override;

  int succeeded() override;
  int stopped(const GroupEnd& end) override;
  std::optional<std::string> undo(const Failure& failure) override;
  std::string give_up(const Failure& failure) override;

 private:
  bool check_run_folder() const;
  void check_tokenizer(const std::filesystem::path& run) const;
  std::string advice(const Failure& failure) const;
  GroupOptions group_options(const std::vector<WorkerPlan>& plans);
  LastSeen last_seen(const WorkerEnd& end) const;
  void report_lost(const WorkerEnd& end, const std::vector<WorkerPlan>& plans,
                   const std::optional<Hang>& hang);
  std::filesystem::path attempt_folder() const;
  // Writes an event of the current attempt into journal.jsonl, on the node that owns the folder.
  void write_stop(const GroupEnd& end);
  void write_event(const std::string& event, const nlohmann::ordered_json& fields);
  std::optional<Hang> watch(const std::vector<RunningWorker>& running);
  std::filesystem::path named_checkpoint() const;
  std::optional<std::filesystem::path> checkpoint_to_load(const Attempt& attempt) const;
  void own_run_folder(bool first);
  void finish_export();
  // `local_rank` counts this launcher's workers; a Slurm task has one, whatever its variables say.
  void choose_threads(WorkerPlan& plan, int local_world_size) const;
  WorkerPlan plan_worker(core::WorkerEnv env, int local_rank, const StoreSocket& store,
                         const std::vector<std::string>& arguments);

  RunRequest request_;
  Replicas replicas_{request_.recipe};
  Placement placement_;
  std::string worker_;
  std::chrono::milliseconds hang_timeout_, grace_;
  std::vector<std::vector<int>> cpus_;  // indexed by local rank; empty: no binding
  std::filesystem::path output_;
  std::string resume_command_, launch_command_;  // as it was started
  JobFacts facts_;
  RecipeRules rules_;
  bool may_be_finished_ = false;
  double busy_threads_;  // load of other processes here before the workers' start
  int attempt_ = 0;
  int launchers_here_ = 1;
  std::unique_ptr<core::Lease> lease_;
  observe::RunJournal journal_{request_.recipe.output};
  bool has_made_folder_ = false;        // the run's folder did not exist before
  bool has_made_memory_ = false;        // the store exists, or a warning said why not
  std::unique_ptr<NodeMemory> memory_;  // set if the recipe asks for it
  core::Descriptor recipe_, console_, nothing_;
  core::Pipe lifeline_;
  // State of the current attempt.
  std::string memory_of_nodes_;  // addresses that receive its workers' checkpoints
  std::vector<core::Descriptor> logs_, verdicts_;
  std::optional<HangWatch> watch_;
  std::function<void(const LostReplica&)> report_lost_;  // reports to other nodes
  std::optional<NodeStatus> status_;
  std::optional<NcclRecorder> recorder_;     // on GPUs
  std::optional<MetricsExport> export_;      // on the node that owns the run folder
  std::atomic<bool> was_unfinished_{false};  // the run was unfinished at the start of the attempt
};

}  // namespace scaletrain::launcher
