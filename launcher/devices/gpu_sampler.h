// Samples the GPUs of a node by the driver's library (NVML).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "launcher/platform/gpus.h"
#include "launcher/platform/nvml.h"
#include "lib/observe/devices/device_sample.h"

namespace scaletrain::launcher {

// Returns the names of the bits of nvmlDeviceGetCurrentClocksThrottleReasons that reduce clocks
// under load: "power cap", "thermal slowdown (hardware)", ...
std::vector<std::string> throttle_reasons(std::uint64_t bits);

class GpuSampler {
 public:
  // Opens the library if there are `gpus`; indexes are their places in the list.
  explicit GpuSampler(const std::vector<Gpu>& gpus);

  // Counters begin with the first call. A value that the driver does not support is nullopt; a GPU
  // that it no longer reaches is lost, and keeps its totals. `seconds` since the last call.
  std::vector<observe::GpuSample> sample(double seconds);

  // Why there are no samples; "": there are, or there are no GPUs.
  const std::string& why_not() const { return why_not_; }

 private:
  // A counter whose growth since the first reading is reported.
  struct Growth {
    std::optional<double> last, sum;

    std::optional<double> add(const std::optional<double>& now);  // growth since the last call
  };
  struct Device {
    Nvml::Handle handle = nullptr;
    observe::GpuSample newest{};
    Growth energy_mj{}, ecc_corrected{}, ecc_uncorrected{}, nvlink_errors{}, sent{}, received{};
    std::optional<double> power_w{}, integrated_j{};
  };

  bool is_lost(const Device& device) const;
  void read_state(Device& device) const;
  void read_energy(Device& device, double seconds) const;
  void read_errors(Device& device) const;
  void read_nvlink(Device& device, double seconds) const;
  std::optional<double> unsigned_value(const char* function, Nvml::Handle handle) const;
  std::optional<double> ecc_errors(Nvml::Handle handle, int type) const;

  std::optional<Nvml> nvml_;
  std::vector<Device> devices_;
  std::string why_not_;
};

}  // namespace scaletrain::launcher
