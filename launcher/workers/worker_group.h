// The workers of this node for one attempt: started together, watched, stopped together.
//
// The first failure that the others do not outlive stops the rest: SIGTERM to each worker's process
// group, the grace period, SIGKILL. When run_group returns, every worker has ended and so has all
// of its process group.
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
  bool stop = false;  // the workers shall be stopped
  std::vector<int>
      lost_with{};  // ranks here that go with those that others have lost, not with all
};

struct GroupOptions {
  std::chrono::milliseconds grace{0};
  // Foreign programs: when the first client knocks here, the store is served (-1: never).
  int store_fd = -1;
  // Maps a signal that the launcher received to the one that a worker is sent.
  std::function<int(int)> forwarded = [](int signal) { return signal; };
  const Keeper* keeper = nullptr;       // ends what workers leave where this process is killed
  std::vector<pid_t> other_children{};  // child processes that others wait for
  // Called for every worker once it runs.
  std::function<void(const WorkerPlan&, pid_t)> started = [](const WorkerPlan&, pid_t) {};
  // Called every `beat_every`; a returned text is a reason to stop the workers.
  std::function<std::string()> beat;
  std::chrono::milliseconds beat_every{0};
  // Called when a worker has failed, before the launcher stops the others.
  std::function<void()> peer_lost = [] {};
  // Returns true if the others go on after this worker failed; null: they never do. A hanging
  // worker is passed as if it had been killed, and then is killed.
  std::function<bool(const WorkerEnd&)> may_be_lost{};
  // The ranks that cannot go on without one that the others do: they are killed, and the others go
  // on without them too.
  std::function<std::vector<int>(const WorkerEnd&)> taken_along = [](const WorkerEnd&) {
    return std::vector<int>();
  };
  // Called for each one without which they go on, but for those that it takes along; `hang`: why it
  // was killed, where it was for that.
  std::function<void(const WorkerEnd&, const std::optional<Hang>& hang)> outlived{};
  // Several nodes: asked when `nodes_fd` is readable.
  int nodes_fd = -1;
  std::function<NodesWord()> hear_nodes;
  // Called every `watch_every` with the workers that run, while none is being stopped; a hang ends
  // them at once: one that was stopped or spins hears no other signal than SIGKILL.
  std::function<std::optional<Hang>(const std::vector<RunningWorker>&)> watch{};
  std::chrono::milliseconds watch_every{0};
};

struct GroupEnd {
  std::vector<WorkerEnd> workers;  // in the order of their ends
  int stop_signal = 0;             // the first that the launcher heard; 0: none
  bool nodes_stopped = false;      // another node had the workers stopped
  std::string trouble{};           // why the launcher itself stopped the workers; "": it did not
  std::optional<Hang> hang{};      // for which the launcher ended them
};

// Throws core::Error where a worker cannot be started; those already started are gone then.
GroupEnd run_group(const std::vector<WorkerPlan>& plans, const GroupOptions& options,
                   StopSignals& signals);

}  // namespace scaletrain::launcher
