// Finds the newest checkpoint of a run: in its folder, in the memory of its nodes
// (/checkpoint/replicate) or in the second place (/checkpoint/mirror).
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "launcher/jobs/checks/run_request.h"

namespace scaletrain::launcher {

class NodeMemory;

// Returns the newest checkpoint of the run, verified; nullopt if there is none. A newer peer
// checkpoint in the memory of the nodes `replicas`, or a newer remote copy (checkpoint.mirror), is
// first copied into the run's folder. Damaged checkpoints are a warning, and so is a remote store
// that does not answer if the run's folder has a checkpoint. Throws core::Error as
// format::find_checkpoint and fetch_from_mirror do, and core::UsageError for a remote copy of
// another run.
std::optional<std::filesystem::path> newest_checkpoint(const RunRequest& request,
                                                       const std::vector<std::string>& replicas,
                                                       const NodeMemory* memory);

// Returns the checkpoint from which an attempt starts, verified: the requested one, or after the
// first attempt the newest one; nullopt if the run starts from the beginning. Throws as
// newest_checkpoint, named_checkpoint and refuse_copies_of_another do.
std::optional<std::filesystem::path> checkpoint_to_load(const RunRequest& request,
                                                        bool is_first_attempt,
                                                        const std::vector<std::string>& replicas,
                                                        const NodeMemory* memory);

// For a new run: throws core::UsageError if its mirror (/checkpoint/mirror) has checkpoints, since
// two runs would remove each other's.
void refuse_copies_of_another(const recipe::Recipe& recipe);

}  // namespace scaletrain::launcher
