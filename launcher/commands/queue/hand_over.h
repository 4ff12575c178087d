// Runs of a queue that Slurm does.
#pragma once

#include <string>
#include <vector>

#include "launcher/commands/queue/queued_job.h"

namespace scaletrain::launcher {

// "--nodes 2 --job-name 'my run'": words as a shell cuts them, by blanks outside of quotes; a
// backslash takes what follows as it is, but for between single quotes. Throws core::UsageError
// where a quote is not closed.
std::vector<std::string> split_words(const std::string& text);

// Marks jobs that Slurm has finished as done and jobs that it runs as running. If its programs are
// not on PATH, only finished jobs are seen.
void ask_slurm(std::vector<QueuedJob>& jobs);

// `LAUNCHER slurm RECIPE --set ... WORDS --submit` for each job that waits and is not in Slurm's
// queue already, in their order; with --print among the words nothing is submitted. The status of
// the first that fails, else 0.
int hand_to_slurm(const std::vector<QueuedJob>& jobs, const std::string& launcher,
                  std::vector<std::string> words);

}  // namespace scaletrain::launcher
