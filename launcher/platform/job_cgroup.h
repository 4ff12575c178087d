// A cgroup (v2) for all that a job's workers start, whatever sessions they make, below that of this
// process. One can be had as root, or where a user's own is delegated.
#pragma once

#include <filesystem>
#include <string_view>

#include "lib/core/descriptor.h"

namespace scaletrain::launcher {

// The folder of a process's cgroup, by the texts of its /proc/PID/mountinfo and /proc/PID/cgroup;
// "" where no mount shows it.
std::filesystem::path find_cgroup(std::string_view mounts, std::string_view cgroups);

// Cgroup of this process; "" under Slurm too, which ends the processes in a step's cgroup but in
// none below it.
std::filesystem::path own_cgroup();

class JobCgroup {
 public:
  // It will be in `parent`; "": there will be none.
  explicit JobCgroup(const std::filesystem::path& parent);

  // Makes it, where that can be.
  void make();

  // Its folder, for core::SpawnRequest; -1: there is none.
  int fd() const { return folder_.get(); }

  // Removes it; what is left in it goes on in the parent.
  void release() const;

  // Ends all that is in it, for up to 10 s, and removes it. Another process than the one that made
  // it may do that.
  void end() const;

 private:
  std::filesystem::path path_;
  core::Descriptor folder_;
};

}  // namespace scaletrain::launcher
