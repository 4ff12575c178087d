// Reads the states of all checkpoints of a run, for the links latest and best and for retention.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

#include "lib/format/checkpoint/train_state.h"

namespace scaletrain::format {

// Checkpoints by step; each one of the folder is in exactly one map.
struct Survey {
  std::map<std::int64_t, TrainState> states;
  std::map<std::int64_t, std::string> unread;  // reason; checkpoints whose state could not be read
};

// Reads the states of all checkpoints in a run's "checkpoints" folder. Throws core::Error naming
// the folder if it cannot be listed.
Survey survey_checkpoints(const std::filesystem::path& checkpoints);

}  // namespace scaletrain::format
