// One worker before it starts, while it runs and after it has ended, as values.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "lib/core/process/subprocess.h"

namespace scaletrain::launcher {

// Destination of one output stream of a worker.
struct StreamPlan {
  bool relayed = false;    // relayed by the launcher to its own stream; otherwise as in the request
  bool unseen = false;     // a program writes directly to the launcher's own stream
  std::string prefix{};    // prepended to every relayed line
  std::string copy{};      // file for a copy of the relayed output; "": none
  std::string filtered{};  // file for lines that contain one of `wanted`; "": none
  std::vector<std::string> wanted{};
};

struct WorkerPlan {
  int rank = 0;
  int local_rank = 0;
  core::SpawnRequest process;
  StreamPlan standard_output, standard_error;
  std::string error_file{};        // torchrun's error file; "": none
  int verdict_fd = -1;             // in-memory error file of scaletrain's workers; -1: none
  std::string log{};               // file of its standard error; "": relayed only
  std::string device{};            // the worker's device, for reports; "": not known
  bool reports_lost_peer = false;  // scaletrain's workers: exit code 75 means a lost peer
};

// A running worker.
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
  bool was_stopped = false;               // the launcher had sent it a signal before its end
  bool was_killed = false;                // the launcher had sent SIGKILL, first or later
  bool was_tolerated = false;             // it failed, and the job continued without it
  std::vector<std::string> last_lines{};  // the end of standard error, if it was relayed
};

}  // namespace scaletrain::launcher
