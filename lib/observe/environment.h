// environment.json: hardware, software and command of a run, so that a result can be understood and
// repeated later.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace scaletrain::observe {

// Facts that the program provides; host, CPU and git are looked up.
struct EnvironmentFacts {
  std::map<std::string, std::string> versions;  // {"scaletrain": "0.1.0", "torch": "2.11.0"}
  std::vector<std::string> devices;             // device name of each local rank
  int world_size = 1;
  std::vector<std::string> command;  // argv; see command_line
};

// A JSON object, indented, with a newline at its end: time, versions, devices, world_size, command,
// host, kernel, cpu, cores, memory_bytes, working_directory, git_commit (null outside a repository)
// and the variables that change how a run computes or is placed (OMP_NUM_THREADS, NCCL_*, SLURM_*,
// ...). Never holds a secret (lib/observe/secrets.h).
std::string environment_json(const EnvironmentFacts& facts);

// Returns the arguments of a process, for example the launcher (getppid()); {} if it has gone.
std::vector<std::string> command_line(pid_t pid);

// Returns the commit of the repository around `folder`, without running git; "" if there is none.
std::string git_commit(const std::filesystem::path& folder);

}  // namespace scaletrain::observe
