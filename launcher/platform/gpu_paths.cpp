#include "launcher/platform/gpu_paths.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <numeric>
#include <utility>

#include "launcher/platform/gpus.h"
#include "launcher/platform/nvml.h"

namespace scaletrain::launcher {
namespace {

// Constants of nvml.h.
constexpr int kNvLinkCapability = 2;  // NVML_P2P_CAPS_INDEX_NVLINK
constexpr std::array<std::pair<int, GpuPath>, 4> kAncestors{{{20, GpuPath::kSwitch},
                                                             {30, GpuPath::kHostBridge},
                                                             {40, GpuPath::kNumaNode},
                                                             {50, GpuPath::kSystem}}};

std::optional<GpuPath> path_between(const Nvml& nvml, Nvml::Handle one, Nvml::Handle other) {
  using Ask = int(Nvml::Handle, Nvml::Handle, int, int*);
  int status = 1;
  if (nvml.call<Ask>("nvmlDeviceGetP2PStatus", one, other, kNvLinkCapability, &status) == 0 &&
      status == 0) {
    return GpuPath::kNvLink;
  }
  using AskAncestor = int(Nvml::Handle, Nvml::Handle, int*);
  int level = 0;
  if (nvml.call<AskAncestor>("nvmlDeviceGetTopologyCommonAncestor", one, other, &level) != 0) {
    return std::nullopt;
  }
  for (const auto& [most, path] : kAncestors) {
    if (level <= most) return path;
  }
  return std::nullopt;
}

// Completes `order` with groups of `size` inside which no path is longer than `most`.
bool complete(const GpuPaths& paths, std::size_t count, std::size_t size, GpuPath most,
              std::vector<int>& order) {
  if (order.size() == count) return true;
  const std::size_t begun = order.size() % size;
  // A group begins with the first unassigned GPU, and its members are in ascending order.
  const int first = begun == 0 ? 0 : order.back() + 1;
  for (int next = first; next < static_cast<int>(count); ++next) {
    if (std::ranges::find(order, next) != order.end()) continue;
    const bool fits =
        std::all_of(order.end() - static_cast<std::ptrdiff_t>(begun), order.end(), [&](int member) {
          return paths[static_cast<std::size_t>(member)][static_cast<std::size_t>(next)] <= most;
        });
    if (fits) {
      order.push_back(next);
      if (complete(paths, count, size, most, order)) return true;
      order.pop_back();
    }
    if (begun == 0) return false;
  }
  return false;
}

}  // namespace

const char* path_text(GpuPath path) {
  constexpr std::array kTexts = {"NVLink", "a PCIe switch", "a host bridge", "one NUMA node",
                                 "several NUMA nodes"};
  return kTexts[static_cast<std::size_t>(path)];
}

GpuPaths visible_paths_here() {
  const std::vector<Gpu> gpus = visible_gpus_here();
  Nvml nvml;
  if (!nvml.is_there() || nvml.start() != 0) return {};
  std::vector<Nvml::Handle> handles;
  for (const Gpu& gpu : gpus) {
    Nvml::Handle handle = nullptr;
    if (nvml.call<int(const char*, Nvml::Handle*)>("nvmlDeviceGetHandleByUUID", gpu.uuid.c_str(),
                                                   &handle) != 0) {
      return {};
    }
    handles.push_back(handle);
  }
  GpuPaths paths(gpus.size(), std::vector<GpuPath>(gpus.size(), GpuPath::kNvLink));
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    for (std::size_t j = i + 1; j < gpus.size(); ++j) {
      const std::optional<GpuPath> path = path_between(nvml, handles[i], handles[j]);
      if (!path) return {};
      paths[i][j] = paths[j][i] = *path;
    }
  }
  return paths;
}

GpuPath longest_path(const GpuPaths& paths, const std::vector<int>& order, int size) {
  GpuPath longest = GpuPath::kNvLink;
  const auto group = static_cast<std::size_t>(size);
  for (std::size_t i = 0; i < order.size(); ++i) {
    for (std::size_t j = i + 1; j < (i / group + 1) * group; ++j) {
      longest = std::max(
          longest, paths[static_cast<std::size_t>(order[i])][static_cast<std::size_t>(order[j])]);
    }
  }
  return longest;
}

std::optional<std::vector<int>> nearer_order(const GpuPaths& paths, int count, int size) {
  std::vector<int> numbers(static_cast<std::size_t>(count));
  std::iota(numbers.begin(), numbers.end(), 0);
  const GpuPath now = longest_path(paths, numbers, size);
  for (int path = 0; path < static_cast<int>(now); ++path) {
    std::vector<int> order;
    if (complete(paths, numbers.size(), static_cast<std::size_t>(size), static_cast<GpuPath>(path),
                 order)) {
      return order;
    }
  }
  return std::nullopt;
}

}  // namespace scaletrain::launcher
