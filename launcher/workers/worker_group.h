// The workers of this node for one attempt: started together, watched, stopped together.
//
// The first failure that the job does not tolerate stops the rest: SIGTERM to each worker's process
// group, the grace period, SIGKILL. When run_group() returns, all workers and their process groups
// have ended.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "launcher/platform/stop_signals.h"
#include "launcher/workers/hang_watch.h"
#include "launcher/workers/keeper.h"
#include "launcher/workers/worker_plan.h"

namespace scaletrain::launcher {

// News from the job's other nodes.
struct NodesWord {
  bool stop = false;             // the workers must be stopped
  std::vector<int> lost_with{};  // local ranks to evict with replicas lost on other nodes
};

struct GroupOptions {
  std::chrono::milliseconds grace{0};
  // Foreign programs: when the first client knocks here, the store is served (-1: never).
  int store_fd = -1;
  // Maps a signal that the launcher received to the one that a worker is sent.
  std::function<int(int)> forwarded = [](int signal) { return signal; };
  const Keeper* keeper = nullptr;       // cleans up after the workers if this process is killed
  std::vector<pid_t> other_children{};  // child processes that other code waits for
  // Called for every worker after its start.
  std::function<void(const WorkerPlan&, pid_t)> started = [](const WorkerPlan&, pid_t) {};
  // Called every `beat_every`; a returned text is a reason to stop the workers.
  std::function<std::string()> beat;
  std::chrono::milliseconds beat_every{0};
  // Called when a worker has failed, before the launcher stops the others.
  std::function<void()> peer_lost = [] {};
  // Returns true if the others go on after this worker failed; null: they never do. A hanging
  // worker is passed as if it had been killed, and then is killed.
  std::function<bool(const WorkerEnd&)> may_be_lost{};
  // Returns the ranks that must be evicted with a lost worker; they are killed.
  std::function<std::vector<int>(const WorkerEnd&)> taken_along = [](const WorkerEnd&) {
    return std::vector<int>();
  };
  // Called for each worker whose loss is tolerated, except evicted ones; `hang`: the hang for which
  // it was killed.
  std::function<void(const WorkerEnd&, const std::optional<Hang>& hang)> outlived{};
  // Several nodes: asked when `nodes_fd` is readable.
  int nodes_fd = -1;
  std::function<NodesWord()> hear_nodes;
  // Called every `watch_every` with the running workers while none is being stopped. A hang kills
  // them at once: a stopped or spinning process handles only SIGKILL.
  std::function<std::optional<Hang>(const std::vector<RunningWorker>&)> watch{};
  std::chrono::milliseconds watch_every{0};
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
