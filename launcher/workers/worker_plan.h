// One worker before it starts, while it runs and after it has ended, as values.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "lib/core/process/subprocess.h"

namespace scaletrain::launcher {

// Destination of one output stream of a worker.
struct StreamPlan {
  bool relayed = false;  // through the launcher to its own stream; otherwise as the request says
  bool unseen = false;   // a user's program writes to the launcher's own stream, past the launcher
  std::string prefix{};  // prepended to every relayed line
  std::string copy{};    // a file for a copy of what is relayed; "": none
  std::string filtered{};  // a file for its lines that have one of `wanted`; "": none
  std::vector<std::string> wanted{};
};

struct WorkerPlan {
  int rank = 0;
  int local_rank = 0;
  core::SpawnRequest process;
  StreamPlan standard_output, standard_error;
  std::string error_file{};  // torchrun's; "": none
  int verdict_fd = -1;       // a file in memory where our own workers write the same; -1: none
  std::string log{};         // file of its standard error; "": it passed through the launcher only
  std::string device{};      // the worker's device, for reports; "": not known
  bool reports_lost_peer = false;  // exit code 75 means that it lost a peer: our own workers
};

// For those who watch the group.
struct RunningWorker {
  int rank = 0;
  int local_rank = 0;
  pid_t pid = 0;
};

struct WorkerEnd {
  int rank = 0;
  int local_rank = 0;
  pid_t pid = 0;
  core::ExitStatus status;
  double time = 0;                        // Unix seconds at which the launcher saw it
  bool was_stopped = false;               // the launcher had sent it a signal before
  bool was_killed = false;                // it had sent SIGKILL, at once or after another
  bool was_outlived = false;              // it failed, and the job continued without it
  std::vector<std::string> last_lines{};  // the end of standard error, if it was relayed
};

}  // namespace scaletrain::launcher
