// Memory and traffic of a recipe's parallel layout per rank, computed by its worker (app/worker/
// layout_command.h).
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "launcher/commands/explain/explanation.h"
#include "lib/recipe/sections/parallel/offload.h"

namespace scaletrain::recipe {
struct Recipe;
}

namespace scaletrain::launcher {

// Asks the worker of `recipe`, resolved for `ranks` ranks, with further `flags` of the worker.
// Throws core::UsageError with the last line of the worker's output.
nlohmann::ordered_json ask_layout(const recipe::Recipe& recipe, int ranks, int ranks_per_node,
                                  const std::vector<std::string>& flags = {});

// Rows from the worker's answer: bytes by kind of a rank of each pipeline stage, and the bytes that
// it passes to each collective per step. State that `offload` moves off the device has rows after
// the device's own.
std::vector<Explained> memory_rows(const nlohmann::ordered_json& layout,
                                   const recipe::Offload& offload = {});
std::vector<Explained> traffic_rows(const nlohmann::ordered_json& layout);

}  // namespace scaletrain::launcher
