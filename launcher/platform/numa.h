// NUMA binding: CPUs on which each worker of this node may run (--numa-binding), from /sys.
//
// The rules are torchrun's (torch/numa/binding.py): the GPU of a worker is the one whose number is
// its local rank. Without GPUs the workers are spread evenly over the NUMA nodes. Memory
// follows: Linux gives a thread pages of the node that it runs on.
#pragma once

#include <filesystem>
#include <set>
#include <string>
#include <vector>

namespace scaletrain::launcher {

// Parses a list of /sys: "0-2,4" is {0, 1, 2, 4}; stops at the first invalid number.
std::set<int> parse_cpu_list(const std::string& text);
// {0, 1, 2, 4} as "0-2,4".
std::string cpu_list(const std::vector<int>& cpus);

// Returns the CPUs of each of `workers` local ranks, sorted. `mode`: node (all of the GPU's NUMA
// node), socket (all nodes of its socket), exclusive (the node's cores divided among its GPUs),
// core-complex (cores that share the last-level cache). `gpus`: PCI addresses ("0000:dc:00.0") of
// the visible GPUs, or none. Throws core::UsageError naming --numa-binding for another mode, or too
// few GPUs or cores.
std::vector<std::vector<int>> bind_workers(const std::string& mode, int workers,
                                           const std::vector<std::string>& gpus,
                                           const std::set<int>& allowed,
                                           const std::filesystem::path& sys = "/sys");

// Binding on this machine; empty for mode "": no binding.
std::vector<std::vector<int>> bind_workers_here(const std::string& mode, int workers);

}  // namespace scaletrain::launcher
