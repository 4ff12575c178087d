// The newest checkpoint of a run: in its own folder, in the memory of its nodes
// (/checkpoint/replicate) or in its second place (/checkpoint/mirror).
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "launcher/jobs/checks/run_request.h"

namespace scaletrain::launcher {

class NodeMemory;

// The run's own, verified; where the nodes that keep it in memory at `replicas` or the second place
// have a newer one, that, copied into the run's folder. nullopt: there is none. Warns of damaged
// ones, and of a second place that does not answer where the run has one of its own. Throws
// core::Error as format::find_checkpoint and fetch_from_mirror; core::UsageError for a copy of a
// run that was another one.
std::optional<std::filesystem::path> newest_checkpoint(const RunRequest& request,
                                                       const std::vector<std::string>& replicas,
                                                       const NodeMemory* memory);

// For a run that begins. Throws core::UsageError where its second place holds checkpoints: two runs
// would remove each other's.
void refuse_copies_of_another(const recipe::Recipe& recipe);

}  // namespace scaletrain::launcher
