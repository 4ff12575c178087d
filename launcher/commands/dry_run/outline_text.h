// Outline of a run as text and as JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "launcher/commands/dry_run/run_outline.h"
#include "lib/recipe/sections/parallel/offload.h"

namespace scaletrain::launcher {

// Returns lines of the batch, the steps, the learning rates, the validations, the checkpoints and
// the memory of each rank; `offload`: state that is not on the device.
std::string outline_text(const RunOutline& outline, const recipe::Offload& offload);

// Returns {"name", "ranks", "nodes", "global_batch", "steps", "steps_per_epoch", "rates",
// "validations", "saves", "checkpoint_bytes", "checkpoints_kept", "free_bytes", "memory", "notes"};
// null for an unknown value.
nlohmann::ordered_json outline_json(const RunOutline& outline);

}  // namespace scaletrain::launcher
