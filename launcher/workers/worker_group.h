// The workers of this node for one attempt: started together, watched, stopped together.
//
// The first failure that is not tolerated stops the rest: SIGTERM to each worker's process
// group, the grace period, SIGKILL. When run_group returns, every worker has ended and so has all
// of its process group.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "launcher/platform/stop_signals.h"
#include "launcher/workers/group_observer.h"
#include "launcher/workers/reaper.h"
#include "launcher/workers/worker_plan.h"

namespace scaletrain::launcher {

struct GroupOptions {
  std::chrono::milliseconds grace{0};
  // Foreign programs: when the first client knocks here, the store is served (-1: never).
  int store_fd = -1;
  const Reaper* reaper = nullptr;       // ends orphans of the workers if this process is killed
  std::vector<pid_t> other_children{};  // child processes that others wait for
  GroupObserver* observer = nullptr;    // null: the defaults of GroupObserver
  std::chrono::milliseconds heartbeat_every{0};  // 0: never
  std::chrono::milliseconds watch_every{0};      // 0: never
  NodeLink* nodes = nullptr;                     // null: the job runs on this node only
};

struct GroupEnd {
  std::vector<WorkerEnd> workers;  // in the order of their ends
  int stop_signal = 0;             // first stop signal of the launcher; 0: none
  bool nodes_stopped = false;      // another node stopped the workers
  std::string trouble{};           // reason why the launcher stopped the workers; "": none
  std::optional<Hang> hang{};      // hang for which the launcher killed them
};

// Throws core::Error if a worker cannot be started; those already started are then ended.
GroupEnd run_group(const std::vector<WorkerPlan>& plans, const GroupOptions& options,
                   StopSignals& signals);

}  // namespace scaletrain::launcher
