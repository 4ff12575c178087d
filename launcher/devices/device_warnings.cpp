#include "launcher/devices/device_warnings.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

namespace scaletrain::launcher {
namespace {

constexpr double kGigabyte = 1e9;

std::string remedy_of(std::string_view reason) {
  return reason.starts_with("thermal")
             ? "it is slower until it cools down: check its cooling, or limit its power with "
               "nvidia-smi -pl"
             : "it is slower: check its power supply and its cables";
}

}  // namespace

std::vector<std::string> DeviceWarnings::look(const observe::DeviceSample& sample) {
  std::vector<std::string> warnings;
  for (const observe::GpuSample& gpu : sample.gpus) look_at_gpu(gpu, sample.node_name, warnings);
  look_at_host(sample.host, sample.node_name, warnings);
  return warnings;
}

void DeviceWarnings::look_at_gpu(const observe::GpuSample& gpu, const std::string& host,
                                 std::vector<std::string>& warnings) {
  const std::string place = fmt::format("GPU {} of {} ({})", gpu.index, host, gpu.uuid);
  if (gpu.lost && is_first(gpu.uuid + " lost")) {
    warnings.push_back(place +
                       ": the driver no longer reaches it: look for Xid in dmesg; it needs "
                       "a reset or a reboot of the node");
  }
  if (gpu.ecc_uncorrected.value_or(0) > 0 && is_first(gpu.uuid + " ecc")) {
    warnings.push_back(
        fmt::format("{}: {:.0f} uncorrected ECC errors in this run: its results may "
                    "be wrong; exclude it, or reset it with nvidia-smi -r",
                    place, *gpu.ecc_uncorrected));
  }
  for (const std::string& reason : gpu.throttled) {
    if (reason == "power cap" || reason == "sync boost") continue;
    const std::string cause = gpu.uuid + " " + reason;
    throttled_.insert(cause);
    if (throttled_.count(cause) < static_cast<std::size_t>(kPatience) || !is_first(cause)) continue;
    warnings.push_back(
        fmt::format("{}: its clocks are reduced by {}: {}", place, reason, remedy_of(reason)));
  }
}

void DeviceWarnings::look_at_host(const observe::HostSample& host, const std::string& name,
                                  std::vector<std::string>& warnings) {
  constexpr double kLeastShare = 0.03;  // of memory
  constexpr double kLeastDiskShare = 0.05, kLeastDisk = 20 * kGigabyte;
  if (host.memory_used_bytes && host.memory_available_bytes) {
    const double available = *host.memory_available_bytes;
    const double total = *host.memory_used_bytes + available;
    if (available < kLeastShare * total && is_first("memory")) {
      warnings.push_back(
          fmt::format("{}: {:.1f} of {:.1f} GB of the host's memory are used: the kernel may kill "
                      "a rank; lower "
                      "data.threads or data.prefetch, or use fewer ranks on a node",
                      name, *host.memory_used_bytes / kGigabyte, total / kGigabyte));
    }
  }
  if (host.disk_free_bytes && host.disk_bytes) {
    const double least = std::min(kLeastDisk, kLeastDiskShare * *host.disk_bytes);
    if (*host.disk_free_bytes < least && is_first("disk")) {
      warnings.push_back(fmt::format(
          "{}: {:.1f} GB are free on the file system of the run: a checkpoint may fail; free some, "
          "or lower checkpoint.keep_last",
          name, *host.disk_free_bytes / kGigabyte));
    }
  }
}

}  // namespace scaletrain::launcher
