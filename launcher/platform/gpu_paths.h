// Connections between the GPUs of this machine, from the driver's library (NVML), and the GPU order
// that keeps groups of neighbouring ranks close.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace scaletrain::launcher {

// Nearest first; NV, PIX or PXB, PHB, NODE and SYS of `nvidia-smi topo -m`.
enum class GpuPath { kNvLink, kSwitch, kHostBridge, kNumaNode, kSystem };
// "NVLink", "a PCIe switch", "a host bridge", "one NUMA node", "several NUMA nodes".
const char* path_text(GpuPath path);

// [i][j] for the GPUs in CUDA_VISIBLE_DEVICES, by CUDA's numbers; symmetric.
using GpuPaths = std::vector<std::vector<GpuPath>>;

// Returns {} if the driver does not report them.
GpuPaths visible_paths_here();

// Returns the longest path within groups of `size` neighbours in `order`, a list of GPU numbers;
// its length is a multiple of `size`, which is at least 2.
GpuPath longest_path(const GpuPaths& paths, const std::vector<int>& order, int size);

// Returns the order of the first `count` GPUs with the shortest longest_path(), if it is shorter
// than in their present order; otherwise nullopt.
std::optional<std::vector<int>> nearer_order(const GpuPaths& paths, int count, int size);

}  // namespace scaletrain::launcher
