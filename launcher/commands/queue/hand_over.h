// Submits the runs of a queue to Slurm.
#pragma once

#include <string>
#include <vector>

#include "launcher/commands/queue/queued_job.h"

namespace scaletrain::launcher {

// Splits "--nodes 2 --job-name 'my run'" as a shell does, at blanks outside quotes; a backslash
// quotes the next character except between single quotes. Throws core::UsageError for an
// unterminated quote.
std::vector<std::string> split_words(const std::string& text);

// Marks jobs that Slurm has finished as done and jobs that it runs as running. If its programs are
// not on PATH, only finished jobs are seen.
void ask_slurm(std::vector<QueuedJob>& jobs);

// Runs `LAUNCHER slurm RECIPE --set ... WORDS --submit` for each waiting job that is not in Slurm's
// queue, in order; with --print among the words nothing is submitted. Returns the status of the
// first failure, else 0.
int hand_to_slurm(const std::vector<QueuedJob>& jobs, const std::string& launcher,
                  std::vector<std::string> words);

}  // namespace scaletrain::launcher
