// Runs a recipe as a job: its run folder, its workers, and the meaning of failures.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "launcher/devices/device_watch.h"
#include "launcher/jobs/checks/run_request.h"
#include "launcher/jobs/job.h"
#include "launcher/jobs/metrics_export.h"
#include "launcher/jobs/node_memory.h"
#include "launcher/jobs/recipe_observer.h"
#include "launcher/jobs/recipe_workers.h"
#include "launcher/jobs/replicas.h"
#include "launcher/jobs/run_folder.h"

namespace scaletrain::launcher {

class RecipeJob : public AttemptMaker, public JobEnding {
 public:
  // Checks everything that can be wrong before anything is written: batch, sources, devices,
  // worker, the run's folder. Reads --hang-timeout and --numa-binding from `options`. Throws
  // core::Error.
  RecipeJob(RunRequest request, Placement placement, const LaunchOptions& options);
  RecipeJob(const RecipeJob&) = delete;
  RecipeJob& operator=(const RecipeJob&) = delete;

  // Creates the run's folder and takes its lease. Returns the exit status if the run is finished
  // already. Throws core::UsageError if another job owns the folder, and core::StorageError.
  std::optional<int> open_run_folder();

  // Returns the parts of the job, valid as long as this object.
  Job job() { return {.facts = facts_, .rules = rules_, .attempts = *this, .ending = *this}; }

  std::string memory(const std::vector<std::string>& addresses) override;
  std::string make_plan(const Attempt& attempt) override;
  AttemptPlan plan_attempt(const Attempt& attempt, const StoreSocket& store) override;
  std::vector<int> note_lost(const std::vector<LostReplica>& lost) override;
  std::vector<int> lost_with(int node) const override { return replicas_.on_node(node); }
  bool is_done() const override { return folder_.is_finished_now(); }
  void attempt_ended(const GroupEnd& end, const std::vector<WorkerPlan>& plans) override;
  void attempt_judged(const std::optional<Failure>& failure, const std::string& restart) override;

  int succeeded() override;
  int stopped(const GroupEnd& end) override;
  std::optional<std::string> refusal(const Failure& failure) const override;
  void undo() override;
  std::string give_up(const Failure& failure) override;

 private:
  void begin_export();
  void finish_export();
  void watch_devices();
  void report_energy();
  std::string resume_peer_stores(const Attempt& attempt, std::int64_t step);
  void write_start(const Attempt& attempt, const std::string& checkpoint, std::int64_t step);
  void write_stop(const GroupEnd& end);
  std::string advice(const Failure& failure) const;

  RunRequest request_;
  Replicas replicas_{request_.recipe};
  Placement placement_;  // of the current attempt
  std::chrono::milliseconds hang_timeout_;
  std::string resume_command_, launch_command_;  // as it was started
  RecipeWorkers workers_;
  JobFacts facts_;
  RecipeRules rules_;
  RunFolder folder_{request_.recipe};
  bool may_be_finished_ = false;
  bool has_made_memory_ = false;            // or has warned why there is none
  std::unique_ptr<NodeMemory> memory_;      // set if the recipe asks for it
  std::optional<DeviceWatch> devices_;      // from the first attempt on
  std::optional<MetricsExport> export_;     // on the node that owns the run folder
  std::optional<RecipeObserver> observer_;  // of the current attempt
};

}  // namespace scaletrain::launcher
