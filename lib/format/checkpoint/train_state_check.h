// Checks that the fields of a state.json are valid, each by itself and together with the others.
#pragma once

#include <string>

#include "lib/format/checkpoint/train_state_fields.h"

namespace scaletrain::format {

// Throws core::CheckpointError naming `place` and the first field that is invalid by itself (a
// share above 1, a scale below 0) or contradicts others.
void check_state(const TrainState& state, const std::string& place);

// Throws core::CheckpointError naming `place` if `state` is past the end of training in the
// resolved recipe `recipe` (JSON).
void check_not_past_end(const TrainState& state, const nlohmann::json& recipe,
                        const std::string& place);

}  // namespace scaletrain::format
