// state.json: TrainState as JSON with named fields, and back.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "lib/checkpoint/checkpoint.h"

namespace scaletrain::checkpoint {

std::string render_state(const TrainState& state);

// Throws core::CheckpointError naming `place`, the field and what is allowed.
TrainState parse_state(std::string_view text, const std::string& place);

}  // namespace scaletrain::checkpoint
