// The flags of `scaletrain launch` and `scaletrain resume`, as a person gave them.
//
// torchrun's flags keep their names, in both spellings (--node-rank, --node_rank), and their PET_*
// variables; the command line wins over the variable.
#pragma once

#include <chrono>
#include <string>
#include <vector>

namespace CLI {  // NOLINT(readability-identifier-naming): the name is CLI11's
class App;
}

namespace scaletrain::launcher {

struct LaunchOptions {
  // Read by resolve_placement (launcher/placement.h).
  std::string nproc = "1";
  std::string nnodes = "1";
  std::string node_rank = "0";
  std::string master_addr{};
  std::string master_port{};

  std::string max_restarts = "0";
  std::string grace = "30s";
  std::string log_dir{};             // foreign programs: where both streams are copied; "": nowhere
  std::vector<std::string> set{};    // recipes: overrides, key=value
  std::vector<std::string> allow{};  // recipes: keys that may differ from the run that is resumed
  std::string resume{};              // recipes: "", "auto" or a path
  std::string worker{};              // recipes: another worker program than the one beside us
  std::string path{};                // launch: the recipe; resume: checkpoint, run folder or latest
  std::vector<std::string> program{};  // launch: what follows --
};

// The flags that launch and resume share.
void add_launch_flags(CLI::App& command, LaunchOptions& options);

// A whole number from `low` to `high`. Throws core::UsageError naming `flag`.
int parse_count(const std::string& flag, const std::string& text, int low, int high);

// "500ms", "10s", "5m"; at most a week. Throws core::UsageError naming `flag`.
std::chrono::milliseconds parse_duration(const std::string& flag, const std::string& text);

}  // namespace scaletrain::launcher
