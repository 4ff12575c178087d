// Warnings about a node's devices with their remedies, from its samples.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "lib/observe/devices/device_sample.h"

namespace scaletrain::launcher {

class DeviceWarnings {
 public:
  // Returns the warnings that `sample` adds, each cause of a device once: a lost GPU, uncorrected
  // ECC errors, clocks reduced by heat or by the hardware in kPatience samples, host memory and
  // file system nearly full. A GPU at its power cap is usual under load.
  std::vector<std::string> look(const observe::DeviceSample& sample);

  static constexpr int kPatience = 10;

 private:
  void look_at_gpu(const observe::GpuSample& gpu, const std::string& host,
                   std::vector<std::string>& warnings);
  void look_at_host(const observe::HostSample& host, const std::string& name,
                    std::vector<std::string>& warnings);
  bool is_first(const std::string& cause) { return known_.insert(cause).second; }

  std::set<std::string> known_;
  std::multiset<std::string> throttled_;  // "UUID reason" of each sample
};

}  // namespace scaletrain::launcher
