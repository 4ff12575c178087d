// Checks that this machine and the launch fit a recipe, before anything starts.
#pragma once

#include <chrono>
#include <string>

#include "launcher/place/placement.h"

namespace scaletrain::recipe {
struct Data;
struct Recipe;
}  // namespace scaletrain::recipe

namespace scaletrain::launcher {

// Throws core::UsageError where the recipe wants GPUs and there are fewer than workers.
void check_devices(const recipe::Recipe& recipe, const Placement& placement);

// Throws core::UsageError where `path` is a program rather than a recipe, or nothing at all: a
// program stands after --.
void refuse_program_as_recipe(const std::string& path);

// Warns where remote reads may be tried again for longer than a worker may stand still: the hang is
// what ends the run then.
void warn_of_patience(const recipe::Recipe& recipe, std::chrono::milliseconds hang_timeout);

// Warns where a held-out set has shards or token files that the training set has too.
void warn_of_shared_files(const recipe::Data& data);

}  // namespace scaletrain::launcher
