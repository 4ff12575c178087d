// `scaletrain checkpoint ls`, `prune` and `now`: the checkpoints of a run's folder.
#pragma once

#include <CLI/App.hpp>

namespace scaletrain::launcher {

void add_checkpoint_keep(CLI::App& checkpoint, int& exit_status);

}  // namespace scaletrain::launcher
