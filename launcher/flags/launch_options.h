// Flags of `scaletrain launch` and `scaletrain resume`, as given.
//
// torchrun's flags keep their names, in both spellings (--node-rank, --node_rank), and their PET_*
// variables; the command line wins over the variable.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "launcher/flags/agent_options.h"
#include "launcher/flags/rare_flags.h"
#include "lib/core/text/cli_app.h"

namespace scaletrain::launcher {

// Help headings of flags that only recipes, or only programs, have.
inline constexpr const char* kRecipeFlags = "Recipe";
inline constexpr const char* kProgramFlags = "Programs after --";

inline constexpr const char* kRecipeHangTimeout = "10m";
inline constexpr const char* kProgramHangTimeout = "0s";  // never
inline constexpr const char* kNoLogs = "/dev/null";       // value of --log-dir for no files

struct LaunchOptions {
  // Read by resolve_placement (launcher/place/placement.h); "": not given.
  std::string nproc{};
  std::string nnodes{};
  std::string node_rank{};
  std::string master_addr{};
  std::string master_port{};
  bool standalone = false;
  std::string rdzv_backend = "static";
  std::string rdzv_endpoint{};
  std::string rdzv_conf{};   // parse_rdzv_conf
  std::string local_addr{};  // address for other nodes, without fixed ranks; "": detected

  std::string max_restarts = "0";
  std::string grace = "30s";
  AgentOptions agents{};
  std::string hang_timeout{};    // "": see hang_timeout()
  bool beat_from_start = false;  // programs: watches them before their first heartbeat too
  std::string numa_binding{};    // "": none; launcher/platform/numa.h

  // Programs.
  std::string log_dir{};        // folder for copies of streams and error files; "": a temporary one
  std::string redirects = "0";  // launcher/output/streams.h
  std::string tee = "0";
  std::string local_ranks_filter{};
  std::string ranks_filter{};
  std::string role = "default";
  std::string run_id{};
  std::string signals = "SIGTERM,SIGINT,SIGHUP,SIGQUIT";
  bool virtual_local_rank = false;
  RareFlags rare{};

  std::vector<std::string> set{};    // recipes: overrides, key=value
  std::vector<std::string> allow{};  // recipes: keys that may differ from the run that is resumed
  std::string resume{};              // recipes: "", "auto" or a path
  std::int64_t overfit = 0;          // recipes: samples of a wiring test; 0: none
  std::string worker{};              // recipes: worker program; "": the standard one
  std::string path{};                // launch: the recipe; resume: checkpoint, run folder or latest
  std::vector<std::string> program{};  // launch: the program and its arguments
};

// Adds the flags that launch and resume share.
void add_launch_flags(CLI::App& command, LaunchOptions& options);

// Adds the flags for hang detection, stopping and restarts; `worker` has them too.
void add_supervision_flags(CLI::App& command, LaunchOptions& options);

// Adds the flags for programs.
void add_program_flags(CLI::App& command, LaunchOptions& options);

// Returns --hang-timeout, or `otherwise` if it is not given. Throws core::UsageError.
std::chrono::milliseconds hang_timeout(const LaunchOptions& options, const char* otherwise);

}  // namespace scaletrain::launcher
