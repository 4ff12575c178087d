// What a recipe's layout costs the ranks of a job, as its worker finds it (app/worker/
// layout_command.h).
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "launcher/commands/explain/explanation.h"
#include "lib/recipe/sections/offload.h"

namespace scaletrain::recipe {
struct Recipe;
}

namespace scaletrain::launcher {

// Asks the worker of `recipe`, which is as a run of `ranks` ranks would get it. Throws
// core::UsageError with the last line of what the worker said.
nlohmann::ordered_json ask_layout(const recipe::Recipe& recipe, int ranks, int ranks_per_node);

// Of the worker's answer: the bytes of a rank of each place of the pipeline by kind, and what such
// a rank gives to each exchange of a step. What `offload` moves away from a device has rows behind
// the device's own.
std::vector<Explained> memory_rows(const nlohmann::ordered_json& layout,
                                   const recipe::Offload& offload = {});
std::vector<Explained> traffic_rows(const nlohmann::ordered_json& layout);

}  // namespace scaletrain::launcher
