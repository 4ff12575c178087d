// What follows for a job where replicas wait for nobody between exchanges.
#pragma once

#include <string>
#include <vector>

#include "lib/recipe/sections/sync.h"

namespace scaletrain::launcher {

// Of so many replicas; {} where they exchange together.
std::vector<std::string> sync_notes(const recipe::Sync& sync, int replicas);

}  // namespace scaletrain::launcher
