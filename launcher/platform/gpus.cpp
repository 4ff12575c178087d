#include "launcher/platform/gpus.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string_view>

#include "launcher/platform/nvml.h"

namespace scaletrain::launcher {
namespace {

// Types of nvml.h: its functions return 0 for success.
struct PciInfo {
  std::array<char, 16> legacy_id;
  unsigned domain, bus, device, device_id, subsystem_id;
  std::array<char, 32> id;
};
struct MemoryInfo {
  unsigned long long total, free, used;
};
using Handle = Nvml::Handle;

Gpu describe_gpu(const Nvml& nvml, Handle device) {
  Gpu gpu{.name = nvml.text("nvmlDeviceGetName", device),
          .uuid = nvml.text("nvmlDeviceGetUUID", device),
          .pci = ""};
  PciInfo pci{};
  if (nvml.call<int(Handle, PciInfo*)>("nvmlDeviceGetPciInfo_v3", device, &pci) == 0) {
    gpu.pci = fmt::format("{:04x}:{:02x}:{:02x}.0", pci.domain, pci.bus, pci.device);
  }
  MemoryInfo memory{};
  if (nvml.call<int(Handle, MemoryInfo*)>("nvmlDeviceGetMemoryInfo", device, &memory) == 0) {
    gpu.memory_bytes = static_cast<std::int64_t>(memory.total);
  }
  unsigned instances = 0;
  nvml.call<int(Handle, unsigned*)>("nvmlDeviceGetMaxMigDeviceCount", device, &instances);
  for (unsigned i = 0; i < instances; ++i) {
    Handle instance = nullptr;
    if (nvml.call<int(Handle, unsigned, Handle*)>("nvmlDeviceGetMigDeviceHandleByIndex", device, i,
                                                  &instance) == 0) {
      gpu.migs.push_back(nvml.text("nvmlDeviceGetUUID", instance));
    }
  }
  return gpu;
}

// Returns the GPU that one entry of CUDA_VISIBLE_DEVICES names, or nullptr.
const Gpu* named_gpu(const std::vector<Gpu>& gpus, std::string_view entry) {
  const auto matches = [&](const Gpu& gpu) {
    if (entry.starts_with("GPU-")) return gpu.uuid.starts_with(entry);
    // Older drivers: MIG-GPU-<uuid>/<instance>/<instance>.
    if (entry.starts_with("MIG-GPU-")) {
      return gpu.uuid == entry.substr(4, entry.find('/') - 4);
    }
    return std::any_of(gpu.migs.begin(), gpu.migs.end(),
                       [&](const std::string& mig) { return mig.starts_with(entry); });
  };
  if (entry.starts_with("GPU-") || entry.starts_with("MIG-")) {
    const auto found = std::find_if(gpus.begin(), gpus.end(), matches);
    return found == gpus.end() ? nullptr : &*found;
  }
  std::size_t index = gpus.size();
  std::from_chars(entry.data(), entry.data() + entry.size(), index);
  return index < gpus.size() ? &gpus[index] : nullptr;
}

std::vector<Gpu> gpus_in_proc() {
  std::vector<Gpu> result;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/driver/nvidia/gpus", none)) {
    Gpu gpu{.name = "", .uuid = "", .pci = entry.path().filename()};
    std::ifstream file(entry.path() / "information");
    for (std::string line; std::getline(file, line);) {
      const std::size_t value = line.find_last_of(" \t") + 1;
      if (line.starts_with("GPU UUID:")) gpu.uuid = line.substr(value);
    }
    result.push_back(std::move(gpu));
  }
  std::sort(result.begin(), result.end(), [](const Gpu& a, const Gpu& b) { return a.pci < b.pci; });
  return result;
}

}  // namespace

std::optional<Driver> ask_driver(std::string* why) {
  const auto refuse = [&](std::string reason) {
    if (why != nullptr) *why = std::move(reason);
    return std::nullopt;
  };
  Nvml nvml;
  if (!nvml.is_there()) return refuse("the driver's library libnvidia-ml.so.1 was not found");
  if (const int status = nvml.start(); status != 0) {
    return refuse(fmt::format("the driver does not answer (NVML error {})", status));
  }
  Driver driver;
  std::array<char, 96> version{};
  nvml.call<int(char*, unsigned)>("nvmlSystemGetDriverVersion", version.data(),
                                  static_cast<unsigned>(version.size()));
  driver.version = version.data();
  nvml.call<int(int*)>("nvmlSystemGetCudaDriverVersion_v2", &driver.cuda_version);
  unsigned count = 0;
  nvml.call<int(unsigned*)>("nvmlDeviceGetCount_v2", &count);
  for (unsigned i = 0; i < count; ++i) {
    Handle device = nullptr;
    // One that has fallen off the bus has no handle; its number stays.
    const int status =
        nvml.call<int(unsigned, Handle*)>("nvmlDeviceGetHandleByIndex_v2", i, &device);
    driver.gpus.push_back(status == 0 ? describe_gpu(nvml, device) : Gpu{});
  }
  return driver;
}

std::vector<std::string> device_entries(std::string_view list) {
  std::vector<std::string> result;
  while (!list.empty()) {
    const std::size_t end = std::min(list.find(','), list.size());
    std::string_view entry = list.substr(0, end);
    list.remove_prefix(std::min(end + 1, list.size()));
    while (!entry.empty() && entry.front() == ' ') entry.remove_prefix(1);
    while (!entry.empty() && entry.back() == ' ') entry.remove_suffix(1);
    result.emplace_back(entry);
  }
  return result;
}

std::vector<Gpu> visible_of(const std::vector<Gpu>& gpus, const std::optional<std::string>& list) {
  if (!list) return gpus;
  std::vector<Gpu> result;
  for (const std::string& entry : device_entries(*list)) {
    const Gpu* const gpu = named_gpu(gpus, entry);
    if (gpu == nullptr) break;
    result.push_back(*gpu);
  }
  return result;
}

std::vector<Gpu> visible_gpus_here() {
  const char* const list = std::getenv("CUDA_VISIBLE_DEVICES");
  const std::optional<Driver> driver = ask_driver();
  return visible_of(driver ? driver->gpus : gpus_in_proc(),
                    list != nullptr ? std::optional<std::string>(list) : std::nullopt);
}

int count_gpus() { return static_cast<int>(visible_gpus_here().size()); }

}  // namespace scaletrain::launcher
