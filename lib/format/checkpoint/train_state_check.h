// Checks that the fields of a state.json are valid, each by itself and together with the others.
#pragma once

#include <string>

#include "lib/format/checkpoint/train_state_fields.h"

namespace scaletrain::format {

// Throws core::CheckpointError naming `place` and the first field that cannot be true by itself (a
// share above 1, a scale below 0) or beside the others.
void check_state(const TrainState& state, const std::string& place);

// Throws core::CheckpointError naming `place` where `state` lies behind the end of the training
// that the resolved recipe `recipe` (JSON) asks for.
void check_not_past_end(const TrainState& state, const nlohmann::json& recipe,
                        const std::string& place);

}  // namespace scaletrain::format
