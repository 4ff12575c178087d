// Runs the jobs of a queue with `scaletrain launch --resume auto` whenever a place is free.
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

// Starts waiting jobs in the order of their numbers; updates the job files, and writes output to
// FOLDER/logs/NUMBER-NAME.log. Passes SIGTERM and SIGINT on: the jobs save and wait for the next
// start; a second SIGINT kills them. The jobs die with this process, however it ends. Returns the
// exit status: 0 all done, 1 some failed, 75 or 130 stopped. Throws core::UsageError if another
// process runs this queue, core::StorageError if a file cannot be written.
int run_queue(std::vector<QueuedJob>& jobs, const std::vector<RunPlace>& places,
              const RunnerOptions& options);

}  // namespace scaletrain::launcher
