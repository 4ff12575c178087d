#include "launcher/devices.h"

#include <dlfcn.h>
#include <sched.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <string_view>

namespace scaletrain::launcher {
namespace {

// The count that the driver's library gives, nullopt where it is absent or refuses.
std::optional<int> ask_nvml() {
  void* const library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return std::nullopt;
  const auto init = reinterpret_cast<int (*)()>(dlsym(library, "nvmlInit_v2"));
  const auto get_count =
      reinterpret_cast<int (*)(unsigned*)>(dlsym(library, "nvmlDeviceGetCount_v2"));
  const auto shut_down = reinterpret_cast<int (*)()>(dlsym(library, "nvmlShutdown"));
  std::optional<int> result;
  if (init != nullptr && get_count != nullptr && shut_down != nullptr && init() == 0) {
    unsigned count = 0;
    if (get_count(&count) == 0) result = static_cast<int>(count);
    shut_down();
  }
  dlclose(library);
  return result;
}

int count_proc_entries() {
  std::error_code error;
  std::filesystem::directory_iterator entries("/proc/driver/nvidia/gpus", error);
  if (error) return 0;
  return static_cast<int>(std::distance(entries, std::filesystem::directory_iterator()));
}

}  // namespace

int count_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return std::max(1, CPU_COUNT(&set));
}

int visible_gpus(const std::optional<std::string>& visible_devices, int present) {
  if (!visible_devices) return present;
  int count = 0;
  std::string_view rest = *visible_devices;
  while (!rest.empty() && count < present) {
    const std::size_t end = std::min(rest.find(','), rest.size());
    std::string_view entry = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    while (!entry.empty() && entry.front() == ' ') entry.remove_prefix(1);
    if (!entry.starts_with("GPU-") && !entry.starts_with("MIG-")) {
      int index = -1;
      std::from_chars(entry.data(), entry.data() + entry.size(), index);
      if (index < 0 || index >= present) break;
    }
    ++count;
  }
  return count;
}

int count_gpus() {
  const char* const visible = std::getenv("CUDA_VISIBLE_DEVICES");
  const std::optional<int> asked = ask_nvml();
  return visible_gpus(visible != nullptr ? std::optional<std::string>(visible) : std::nullopt,
                      asked ? *asked : count_proc_entries());
}

}  // namespace scaletrain::launcher
