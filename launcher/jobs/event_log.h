// Events of a program's workers in torchrun's format: one JSON object per line on standard error
// (--event-log-handler console).
//
// {"name": "torchelastic.worker.status.STATE", "source": "AGENT" or "WORKER", "timestamp":
// milliseconds since 1970, "metadata": {"run_id", "global_rank", "group_rank", "worker_id" (the
// pid), "role", "hostname", "state", "total_run_time" (integer seconds), "rdzv_backend",
// "raw_error", "metadata" (JSON as text), "agent_restarts", "duration_ms"}}. States in order:
// RENDEZVOUS and ASSIGN_WORKER_RANKS, then START of each worker, for every attempt. At the end
// SUCCEEDED or FAILED of each worker, TERMINATED for workers stopped because of another's failure;
// and for the agent SUCCEEDED (also if a worker failed) or, after a signal, FAILED.
#pragma once

#include <string>

#include "launcher/place/placement.h"
#include "launcher/workers/worker_group.h"
#include "lib/core/clock.h"

namespace scaletrain::launcher {

class EventLog {
 public:
  struct Job {
    std::string run_id, role, rdzv_backend, program;
  };

  explicit EventLog(Job job) : job_(std::move(job)) {}

  // Call at the start of an attempt, after its rendezvous.
  void begin_attempt(const Placement& placement, int restart);
  void worker_started(const WorkerPlan& plan, pid_t pid);
  // Call after the last attempt; `plans` are its workers.
  void end(const GroupEnd& end, const std::vector<WorkerPlan>& plans);

 private:
  struct Worker {
    int local_rank = 0;
    pid_t pid = 0;
    const WorkerEnd* end = nullptr;  // set for a failed worker
    std::string error{};             // text of its error file
  };
  void write(const std::string& state, const Worker* worker, const std::string& error) const;

  Job job_;
  Placement placement_;
  core::SteadyTime began_ = core::now();
  int restart_ = 0;
  bool met_ = false;
  int total_run_time_s_ = 0;
};

}  // namespace scaletrain::launcher
