// Watches one attempt of a recipe's workers: hangs, status files, lost replicas, the folder's
// lease.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "launcher/devices/device_watch.h"
#include "launcher/jobs/job.h"
#include "launcher/jobs/metrics_export.h"
#include "launcher/jobs/nccl_recorder.h"
#include "launcher/jobs/node_status.h"
#include "launcher/jobs/replicas.h"
#include "launcher/jobs/run_folder.h"

namespace scaletrain::launcher {

class RecipeObserver : public GroupObserver {
 public:
  // Parts of the job that outlive the attempt.
  struct JobParts {
    const recipe::Recipe& recipe;
    RunFolder& folder;
    Replicas& replicas;
    DeviceWatch& devices;
    MetricsExport* metrics_export = nullptr;  // null: not on this node
    std::chrono::milliseconds hang_timeout;
  };
  RecipeObserver(const JobParts& job, const Attempt& attempt);

  const HangWatch& hang_watch() const { return watch_; }
  const NcclRecorder* recorder() const { return recorder_ ? &*recorder_ : nullptr; }

  // The group of these workers starts. Returns its options.
  GroupOptions begin(std::vector<WorkerPlan> plans);

  int forwarded(int signal) override;
  void started(const WorkerPlan& plan, pid_t pid) override {
    job_.devices.worker_started(plan.rank, pid);
  }
  std::string heartbeat() override { return job_.folder.renew_lease(); }
  std::optional<Hang> watch(const std::vector<RunningWorker>& running) override;
  void peer_lost() override { watch_.announce_lost_peer(); }
  bool tolerates_loss(const WorkerEnd& end) override;
  std::vector<int> evicted_with(const WorkerEnd& end) override;
  void loss_tolerated(const WorkerEnd& end, const std::optional<Hang>& hang) override;

 private:
  LastSeen last_seen(const WorkerEnd& end) const;

  JobParts job_;
  Placement placement_;
  std::function<void(const LostReplica&)> report_lost_;  // to other nodes; null: there are none
  HangWatch watch_;
  NodeStatus status_;
  std::optional<NcclRecorder> recorder_;  // on GPUs
  std::vector<WorkerPlan> plans_;         // indexed by local rank
};

}  // namespace scaletrain::launcher
