// Places for jobs that run side by side: devices or CPUs, divided once.
#pragma once

#include <set>
#include <string>
#include <vector>

namespace scaletrain::launcher {

// Devices and CPUs of one job.
struct RunPlace {
  std::string devices{};    // for CUDA_VISIBLE_DEVICES; "": no GPUs
  std::vector<int> cpus{};  // CPUs that the job may run on; empty: all
};

// Parses --devices: "0,1", UUIDs, MIG instances, "cpu" for none; "" for all visible devices. Throws
// core::UsageError for an entry that this machine does not have.
std::vector<std::string> choose_devices(const std::string& asked);

// Returns places of `nproc` devices each, at most `jobs` (0: as many as fit). Without devices
// returns `jobs` places (0: one), which share the CPUs evenly. Throws core::UsageError if a job
// needs more devices than there are.
std::vector<RunPlace> make_places(const std::vector<std::string>& devices, int nproc, int jobs,
                                  const std::set<int>& cpus);

}  // namespace scaletrain::launcher
