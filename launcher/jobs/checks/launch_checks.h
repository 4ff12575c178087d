// Checks that this machine and the launch fit a recipe, before anything starts.
#pragma once

#include <chrono>
#include <string>

#include "launcher/place/placement.h"

namespace scaletrain::recipe {
struct Recipe;
}

namespace scaletrain::launcher {

// Distinguishes a run that begins now, one that begins later, when an earlier job may have written
// its weights, and one that loads a checkpoint.
enum class Begins { kNow, kLater, kResumed };

// Compares the recipe with its files on this machine before anything starts, for `recipe check`,
// `launch`, `explain launch`, `slurm` and `queue` alike: files that are missing or placeholders;
// the number and names of classes, which a resumed run compares with its checkpoint; tokens,
// vocabulary and the samples of a global batch of `ranks` ranks. Warns where a held-out set has
// shards or token files that the training set has too. Throws core::DataError and
// core::RecipeError.
void check_data(const recipe::Recipe& recipe, int ranks, Begins begins);

// Throws core::UsageError if the recipe needs GPUs, also for fp8, and there are fewer than workers.
void check_devices(const recipe::Recipe& recipe, const Placement& placement);

// Throws core::UsageError if `path` is a program instead of a recipe, or does not exist: a program
// must follow --.
void refuse_program_as_recipe(const std::string& path);

// Warns if remote reads may be retried for longer than the hang timeout, which would then end the
// run.
void warn_of_patience(const recipe::Recipe& recipe, std::chrono::milliseconds hang_timeout);

}  // namespace scaletrain::launcher
