// One sample of all devices of a node: GPUs, CPU, memory, disks, networks, workers and energy.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "launcher/devices/gpu_sampler.h"
#include "launcher/devices/host_sampler.h"
#include "launcher/devices/rapl.h"

namespace scaletrain::launcher {

class DeviceSampler {
 public:
  // `run`: the run's folder. `gpus`: those that the run uses. `root`: folder of "proc" and "sys".
  DeviceSampler(const std::filesystem::path& run, const std::vector<Gpu>& gpus,
                const std::filesystem::path& root = "/");

  // `seconds` since the last call, 0 in the first one. Totals (energy, errors) count from
  // begin_file(). The caller sets node and ranks.
  observe::DeviceSample sample(double seconds, const std::vector<WorkerProcess>& workers);

  // The next samples are of another file: totals begin at those of the last sample, so that the
  // time between two files counts for the second one.
  void begin_file() { base_ = newest_; }

 private:
  HostSampler host_;
  Rapl rapl_;
  GpuSampler gpus_;
  std::string node_name_;
  observe::DeviceSample newest_, base_;  // totals since the first sample
};

}  // namespace scaletrain::launcher
