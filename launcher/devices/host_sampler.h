// Samples CPU, memory, disks and networks of a node, and its workers, from /proc and /sys.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "lib/observe/devices/device_sample.h"

namespace scaletrain::launcher {

struct WorkerProcess {
  int rank = 0;
  pid_t pid = 0;
};

class HostSampler {
 public:
  // `run`: a folder of the file system whose free space is sampled. `root`: folder of "proc" and
  // "sys".
  explicit HostSampler(std::filesystem::path run, std::filesystem::path root = "/");

  // Rates and shares are means over the `seconds` since the last call; the first call has none.
  // Workers that have ended are left out.
  observe::HostSample host(double seconds);
  std::vector<observe::WorkerSample> workers(const std::vector<WorkerProcess>& processes,
                                             double seconds);

 private:
  using Counter = std::optional<double>;
  struct Pair {
    Counter in, out;
  };
  void add_cpu(observe::HostSample& sample);
  void add_memory(observe::HostSample& sample) const;
  void add_disk(observe::HostSample& sample) const;
  Pair disk_bytes() const;
  Pair network_bytes() const;
  Pair rdma_bytes() const;

  std::filesystem::path run_, root_;
  std::optional<std::pair<double, double>> cpu_;  // busy and all ticks since the start
  Pair disks_, network_, rdma_;
  std::map<pid_t, double> ticks_;  // of each worker
};

}  // namespace scaletrain::launcher
