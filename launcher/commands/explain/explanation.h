// Explains what a command would use: names, values and the origin of each.
#pragma once

#include <string>
#include <vector>

namespace scaletrain::launcher {

struct Explained {
  std::string name, value;
  std::string from;  // "--nproc", "PET_NNODES", "Slurm", "recipe.json:17", "default", ...
};

struct Explanation {
  std::string title = "launch";      // the command
  std::vector<Explained> launch{};   // its flags and values derived from them
  std::vector<Explained> runs{};     // for a command with several runs: name, folder, recipe
  std::vector<Explained> recipe{};   // recipe keys; empty for a program and for several recipes
  std::vector<Explained> mesh{};     // positions of the ranks of a multi-rank recipe
  std::vector<Explained> memory{};   // bytes of a rank by kind
  std::vector<Explained> traffic{};  // bytes that a rank passes to collectives per step
  std::vector<Explained> worker{};   // variables of this node's first worker
  std::vector<std::string> notes{};  // flags without effect
};

// Returns tables as text; long values are shortened.
std::string to_text(const Explanation& explanation);
// {"launch": [{"name", "value", "from"}, ...], "recipe": [...], "worker": [...], "notes": [...]};
// another command has its own name in place of "launch", and "runs" in place of "worker". With
// several ranks also "mesh", "memory" and "traffic".
std::string to_json(const Explanation& explanation);

}  // namespace scaletrain::launcher
