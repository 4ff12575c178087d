// How the GPUs of this machine reach each other, as the driver's library (NVML) says, and in
// which order they keep groups of neighbouring ranks near.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace scaletrain::launcher {

// The nearest first; NV, PIX or PXB, PHB, NODE and SYS of `nvidia-smi topo -m`.
enum class GpuPath { kNvLink, kSwitch, kHostBridge, kNumaNode, kSystem };
// "NVLink", "a PCIe switch", "a host bridge", "one NUMA node", "several NUMA nodes".
const char* path_text(GpuPath path);

// [i][j] of the GPUs that CUDA_VISIBLE_DEVICES leaves, by CUDA's numbers: the same both ways.
using GpuPaths = std::vector<std::vector<GpuPath>>;

// Empty where the driver does not say.
GpuPaths visible_paths_here();

// The longest path inside the groups of `size` neighbours that `order`, numbers of GPUs, has;
// `order` is a multiple of `size`, which is at least 2.
GpuPath longest_path(const GpuPaths& paths, const std::vector<int>& order, int size);

// The order of the first `count` GPUs whose longest_path() is shorter than that of their numbers,
// the shortest there is; nullopt where they are best as they are.
std::optional<std::vector<int>> nearer_order(const GpuPaths& paths, int count, int size);

}  // namespace scaletrain::launcher
