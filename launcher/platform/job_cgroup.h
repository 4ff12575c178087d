// A cgroup (v2), below that of this process, for all processes that a job's workers start, whatever
// their sessions. Needs root or a delegated cgroup.
#pragma once

#include <filesystem>
#include <string_view>

#include "lib/core/descriptor.h"

namespace scaletrain::launcher {

// Returns the folder of a process's cgroup from the texts of /proc/PID/mountinfo and
// /proc/PID/cgroup; "" if no mount shows it.
std::filesystem::path find_cgroup(std::string_view mounts, std::string_view cgroups);

// Returns the cgroup of this process; "" also under Slurm, which ends processes in a step's cgroup
// but not in cgroups below it.
std::filesystem::path own_cgroup();

class JobCgroup {
 public:
  // `parent`: folder of the parent cgroup; "": no cgroup is made.
  explicit JobCgroup(const std::filesystem::path& parent);

  // Creates the cgroup if possible.
  void make();

  // Returns the descriptor of its folder, for core::SpawnRequest; -1 if there is none.
  int fd() const { return folder_.get(); }

  // Removes the cgroup; remaining processes move to the parent.
  void release() const;

  // Kills all processes in it, waiting up to 10 s, and removes it. May be called by another process
  // than the creator.
  void end() const;

 private:
  std::filesystem::path path_;
  core::Descriptor folder_;
};

}  // namespace scaletrain::launcher
