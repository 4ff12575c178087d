// Samples the devices of this node once a second while a job runs, and writes the samples to the
// run's folder (lib/observe/devices/device_files.h).
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <memory>

namespace scaletrain::launcher {

// Folder of "proc" and "sys": SCALETRAIN_SYSTEM_ROOT, which tests set, or "/".
std::filesystem::path system_root();

class DeviceWatch {
 public:
  struct Node {
    std::filesystem::path run;
    bool has_gpus = false;  // false: the run uses none, and none are sampled
    int most_gpus = 0;      // of the visible ones, in their order; 0: all
    std::filesystem::path root = system_root();
  };

  // Starts a thread, which opens the driver's library; it warns of devices in trouble.
  explicit DeviceWatch(const Node& node);
  // Ends the thread. If the driver does not answer for some seconds, the thread is left behind.
  ~DeviceWatch();
  DeviceWatch(const DeviceWatch&) = delete;
  DeviceWatch& operator=(const DeviceWatch&) = delete;

  // Writes samples to a file of the attempt from here on. `ranks`: on this node.
  void begin_attempt(const std::filesystem::path& attempt_logs, int node, int ranks);
  void worker_started(int rank, pid_t pid);
  // Writes a last sample, and nothing afterwards; waits for it for some seconds.
  void end_attempt();

 private:
  struct Shared;
  static void run(const std::shared_ptr<Shared>& shared, const Node& node);

  std::shared_ptr<Shared> shared_;
};

}  // namespace scaletrain::launcher
