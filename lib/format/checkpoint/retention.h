// Checkpoint retention: selects the checkpoints of a run to keep, with the reasons.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "lib/format/checkpoint/checkpoint_folder_survey.h"

namespace scaletrain::format {

// Retention settings. The newest state lists the best checkpoints (best_steps), which also stay.
struct Retention {
  std::int64_t last = 3;  // number of newest checkpoints to keep; the newest one is always kept
  // Distance in steps or epochs between permanently kept checkpoints; the oldest checkpoint is the
  // first of them.
  std::optional<double> every_steps = {}, every_epochs = {};
  std::optional<double> hours = {};  // keeps checkpoints that are younger, or of unknown age
};

// Returns the hours since each checkpoint of `survey` was written, by step, except for those that
// cannot be examined.
std::map<std::int64_t, double> hours_since_written(const std::filesystem::path& checkpoints,
                                                   const Survey& survey);

// Returns the steps to keep, each with the first reason that applies: "newest", "best", "last",
// "every" or "age". Other checkpoints whose states `survey` has read may be removed, including
// later steps if training resumed from an earlier one.
std::map<std::int64_t, std::string> kept_checkpoints(const Survey& survey, std::int64_t newest,
                                                     const Retention& retention,
                                                     const std::map<std::int64_t, double>& hours);

}  // namespace scaletrain::format
