// `launch --dry-run`: everything that can be checked before a run is started, and its outline.
#pragma once

namespace scaletrain::launcher {

struct LaunchOptions;

// Checks a recipe as its launch would, without the devices if this machine has none, builds its
// model in a worker on simulated ranks, compares the free space of the output folder with the
// checkpoints that are kept, and prints the outline of the run. Writes nothing. Returns the
// worker's exit status if it refuses the recipe, else 0. Throws core::Error as a launch does, and
// core::StorageError if the checkpoints do not fit.
int dry_run(const LaunchOptions& options, bool as_json);

}  // namespace scaletrain::launcher
