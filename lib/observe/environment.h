// environment.json: what a run ran on, so that a result can be understood and repeated later.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace scaletrain::observe {

// Facts that only the program knows; host, CPU and git are looked up.
struct EnvironmentFacts {
  std::map<std::string, std::string> versions;  // {"scaletrain": "0.1.0", "torch": "2.11.0"}
  std::vector<std::string> devices;             // one name a local rank
  int world_size = 1;
  std::vector<std::string> command;  // argv; see command_line
};

// A JSON object, indented, with a newline at its end: time, versions, devices, world_size, command,
// host, kernel, cpu, cores, memory_bytes, working_directory, git_commit (null outside a repository)
// and the variables that change how a run computes or is placed (OMP_NUM_THREADS, NCCL_*, SLURM_*,
// ...). Never holds a secret (lib/observe/secrets.h).
std::string environment_json(const EnvironmentFacts& facts);

// The arguments of a process, for example of the launcher (getppid()); empty where it has gone.
std::vector<std::string> command_line(pid_t pid);

// The commit that is checked out in the repository around `folder`, read without running git; ""
// where there is none.
std::string git_commit(const std::filesystem::path& folder);

}  // namespace scaletrain::observe
