// The workers of this node for one attempt: started together, watched, stopped together.
//
// The first failure stops the rest: SIGTERM to each worker's process group, the grace period,
// SIGKILL. When run_group returns, every worker has ended and so has all of its process group.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "launcher/hang_watch.h"
#include "launcher/stop_signals.h"
#include "lib/core/subprocess.h"

namespace scaletrain::launcher {

// What happens with one output stream of a worker.
struct StreamPlan {
  bool relayed = false;    // through the launcher to its own stream; otherwise as the request says
  std::string prefix{};    // of every line that is relayed
  std::string copy{};      // a file for a copy of what is relayed; "": none
  std::string filtered{};  // a file for its lines that have one of `wanted`; "": none
  std::vector<std::string> wanted{};
};

struct WorkerPlan {
  int rank = 0;
  int local_rank = 0;
  core::SpawnRequest process;
  StreamPlan standard_output, standard_error;
  std::string error_file{};  // torchrun's; "": none
  std::string log{};     // where its standard error lies; "": it passed through the launcher only
  std::string device{};  // that the worker uses, for reports; "": not known
  bool tells_lost_peer = false;  // exit code 75 means that it lost a peer: our own workers
};

struct GroupOptions {
  std::chrono::milliseconds grace{0};
  // Foreign programs: when the first client knocks here, the store is served (-1: never).
  int store_fd = -1;
  // What a worker is sent for a signal that the launcher heard.
  std::function<int(int)> forwarded = [](int signal) { return signal; };
  std::vector<pid_t> other_children{};  // of this process, whose ends others wait for
  // Told of every worker once it runs.
  std::function<void(const WorkerPlan&, pid_t)> started = [](const WorkerPlan&, pid_t) {};
  // Called every `beat_every`; a returned text is a reason to stop the workers.
  std::function<std::string()> beat;
  std::chrono::milliseconds beat_every{0};
  // Several nodes: looked at when `nodes_fd` is readable; true: the workers shall be stopped.
  int nodes_fd = -1;
  std::function<bool()> nodes_stop;
  // Called every `watch_every` with the workers that run, while none is being stopped; a hang ends
  // them at once: one that was stopped or spins hears no other signal than SIGKILL.
  std::function<std::optional<Hang>(const std::vector<RunningWorker>&)> watch{};
  std::chrono::milliseconds watch_every{0};
};

struct WorkerEnd {
  int rank = 0;
  int local_rank = 0;
  pid_t pid = 0;
  core::ExitStatus status;
  double time = 0;                        // Unix seconds at which the launcher saw it
  bool was_stopped = false;               // the launcher had sent it a signal before
  std::vector<std::string> last_lines{};  // of standard error, where it was relayed
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
