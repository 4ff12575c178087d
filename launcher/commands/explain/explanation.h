// What a launch would use: names, values and where each came from.
#pragma once

#include <string>
#include <vector>

namespace scaletrain::launcher {

struct Explained {
  std::string name, value;
  std::string from;  // "--nproc", "PET_NNODES", "Slurm", "recipe.json:17", "default", ...
};

struct Explanation {
  std::vector<Explained> launch;     // flags and what follows from them
  std::vector<Explained> recipe;     // the keys; empty for a program
  std::vector<Explained> worker;     // variables of this node's first worker
  std::vector<std::string> notes{};  // flags without effect
};

// Three tables for a person; a value that is too long is cut.
std::string to_text(const Explanation& explanation);
// {"launch": [{"name", "value", "from"}, ...], "recipe": [...], "worker": [...], "notes": [...]}
std::string to_json(const Explanation& explanation);

}  // namespace scaletrain::launcher
