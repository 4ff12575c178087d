// Runs that finished on this machine and whose prediction is scored later: `launch` notes each of
// them in microseconds, and `plan scores` predicts and scores those that it finds.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "launcher/plan/score.h"

namespace scaletrain::launcher {

// The list, one JSON object a line, beside the file of scores. Returns "" without a home folder,
// and if SCALETRAIN_PLAN_SCORES is "off".
std::filesystem::path finished_runs_file();

// Appends the folder `run` to `file`; does nothing for "". A failure is a warning.
void note_finished_run(const std::filesystem::path& file, const std::filesystem::path& run);

// Returns the newest `most` runs of `file` that are not among `scores` and whose folder still
// exists, oldest first. Skips lines that are damaged.
std::vector<std::string> unscored_runs(const std::filesystem::path& file,
                                       const std::vector<Score>& scores, std::size_t most);

}  // namespace scaletrain::launcher
