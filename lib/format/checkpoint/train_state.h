// state.json: where training stands, as JSON with named fields
// (docs/reference/formats/checkpoint.md).
#pragma once

#include <string>
#include <string_view>

#include "lib/format/checkpoint/train_state_fields.h"

namespace scaletrain::format {

std::string render_state(const TrainState& state);

// Throws core::CheckpointError naming `place`, the field and what is allowed; fields that
// contradict each other are refused too.
TrainState parse_state(std::string_view text, const std::string& place);

}  // namespace scaletrain::format
