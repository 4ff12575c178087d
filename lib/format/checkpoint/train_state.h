// state.json: the training state as JSON with named fields (docs/reference/formats/checkpoint.md).
#pragma once

#include <string>
#include <string_view>

#include "lib/format/checkpoint/train_state_fields.h"

namespace scaletrain::format {

std::string render_state(const TrainState& state);

// Parses state.json. Throws core::CheckpointError naming `place`, the field and the allowed values,
// also for fields that contradict each other.
TrainState parse_state(std::string_view text, const std::string& place);

}  // namespace scaletrain::format
