// Runs the jobs of a queue, each by `scaletrain launch --resume auto`, as places come free.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "launcher/commands/queue/places.h"
#include "launcher/commands/queue/queued_job.h"

namespace scaletrain::launcher {

struct RunnerOptions {
  std::filesystem::path folder;      // the queue's folder
  std::string launcher;              // the program `scaletrain`
  std::vector<std::string> flags{};  // for every launch: --nproc 2 --max-restarts 1
};

// Starts waiting jobs in the order of their numbers; job files follow, output goes to
// FOLDER/logs/NUMBER-NAME.log. SIGTERM and SIGINT are passed on: the jobs save and wait for the
// next start; a second SIGINT kills them. The jobs die with this process, however it ends. The
// result is the exit status: 0 all done, 1 some failed, 75 or 130 stopped. Throws core::UsageError
// where another process runs this queue, core::StorageError where a file cannot be written.
int run_queue(std::vector<QueuedJob>& jobs, const std::vector<RunPlace>& places,
              const RunnerOptions& options);

}  // namespace scaletrain::launcher
