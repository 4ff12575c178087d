// Notes on a job whose replicas train on their own between synchronizations (local SGD, DiLoCo).
#pragma once

#include <string>
#include <vector>

namespace scaletrain::recipe {
struct Recipe;
}

namespace scaletrain::launcher {

// Notes for `replicas` replicas; {} for one replica or if all synchronize every step.
std::vector<std::string> sync_notes(const recipe::Recipe& recipe, int replicas);

}  // namespace scaletrain::launcher
