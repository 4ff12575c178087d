// The jobs of a queue, handed to Slurm instead of being run here.
#pragma once

#include <string>
#include <vector>

#include "launcher/queue/queued_job.h"

namespace scaletrain::launcher {

// Calls `LAUNCHER slurm RECIPE --set ... WORDS` for each job that waits, one after the other;
// `words` are cut at blanks. The result is the first exit status that is not 0; the rest is not
// called then.
int hand_to_slurm(const std::vector<QueuedJob>& jobs, const std::string& launcher,
                  const std::string& words);

}  // namespace scaletrain::launcher
