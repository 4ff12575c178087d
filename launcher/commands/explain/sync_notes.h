// What follows for a job whose replicas train alone.
#pragma once

#include <string>
#include <vector>

namespace scaletrain::recipe {
struct Recipe;
}

namespace scaletrain::launcher {

// Of so many replicas; {} where replicas of one rank each exchange together.
std::vector<std::string> sync_notes(const recipe::Recipe& recipe, int replicas);

}  // namespace scaletrain::launcher
