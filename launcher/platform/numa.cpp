#include "launcher/platform/numa.h"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <map>

#include "launcher/platform/gpus.h"
#include "lib/core/error.h"
#include "lib/core/printable.h"
#include "lib/core/process/cores.h"
#include "lib/core/text/text.h"

namespace scaletrain::launcher {
namespace {

namespace fs = std::filesystem;

constexpr const char* kNumaFlag = "--numa-binding";

// Returns the first line of a file; "" if there is none.
std::string first_line(const fs::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

int first_number(const fs::path& path, int otherwise) {
  return core::parse_number<int>(first_line(path)).value_or(otherwise);
}

std::set<int> common(const std::set<int>& a, const std::set<int>& b) {
  std::set<int> result;
  std::set_intersection(a.begin(), a.end(), b.begin(), b.end(),
                        std::inserter(result, result.end()));
  return result;
}

class Topology {
 public:
  Topology(fs::path sys, const std::set<int>& allowed) : sys_(std::move(sys)) {
    std::error_code none;
    for (const auto& entry : fs::directory_iterator(sys_ / "devices/system/node", none)) {
      const std::string name = entry.path().filename();
      if (!name.starts_with("node")) continue;
      const int number = core::parse_number<int>(name.substr(4)).value_or(-1);
      const std::set<int> cpus =
          common(parse_cpu_list(first_line(entry.path() / "cpulist")), allowed);
      if (number >= 0 && !cpus.empty()) nodes_[number] = cpus;
    }
    if (nodes_.empty()) nodes_[0] = allowed;  // a kernel without NUMA
  }

  std::size_t node_count() const { return nodes_.size(); }
  int node_number(std::size_t index) const {
    return std::next(nodes_.begin(), static_cast<std::ptrdiff_t>(index))->first;
  }

  // One node reads as -1 on machines that have one only.
  int node_of_gpu(const std::string& pci) const {
    return std::max(0, first_number(sys_ / "bus/pci/devices" / pci / "numa_node", 0));
  }

  const std::set<int>& cpus_of_node(int node) const {
    const auto found = nodes_.find(node);
    if (found != nodes_.end()) return found->second;
    throw core::UsageError(kNumaFlag,
                           fmt::format("this process may not run on any CPU of NUMA node {}", node),
                           "ask for CPUs near the GPUs, or leave the flag out");
  }

  std::set<int> cpus_of_socket(int node) const {
    const int socket = socket_of(node);
    std::set<int> result;
    for (const auto& [other, cpus] : nodes_) {
      if (socket_of(other) == socket) result.insert(cpus.begin(), cpus.end());
    }
    return result;
  }

  // Groups the CPUs of `node` by a shared resource, by the lowest CPU of each group.
  std::map<int, std::set<int>> cores(int node) const {
    return grouped(node, [&](int cpu) {
      return first_line(cpu_folder(cpu) / "topology/thread_siblings_list");
    });
  }
  std::map<int, std::set<int>> core_complexes(int node) const {
    return grouped(node, [&](int cpu) { return sharing_last_cache(cpu); });
  }

 private:
  fs::path cpu_folder(int cpu) const {
    return sys_ / "devices/system/cpu" / fmt::format("cpu{}", cpu);
  }

  int socket_of(int node) const {
    const int cpu = *cpus_of_node(node).begin();
    return first_number(cpu_folder(cpu) / "topology/physical_package_id", 0);
  }

  template <class Sharing>
  std::map<int, std::set<int>> grouped(int node, const Sharing& sharing) const {
    std::map<int, std::set<int>> result;
    for (const int cpu : cpus_of_node(node)) {
      const std::set<int> others = parse_cpu_list(sharing(cpu));
      result[others.empty() ? cpu : *others.begin()].insert(cpu);
    }
    return result;
  }

  std::string sharing_last_cache(int cpu) const {
    int highest = -1;
    std::string result;
    std::error_code none;
    for (const auto& cache : fs::directory_iterator(cpu_folder(cpu) / "cache", none)) {
      const std::string type = first_line(cache.path() / "type");
      const int level = first_number(cache.path() / "level", -1);
      if ((type != "Unified" && type != "Data") || level <= highest) continue;
      highest = level;
      result = first_line(cache.path() / "shared_cpu_list");
    }
    return result;
  }

  fs::path sys_;
  std::map<int, std::set<int>> nodes_;  // CPUs that may be used; nodes without any are left out
};

// Returns part `index` of `count` of the node's cores; the first parts have one more if the
// division has a remainder.
std::set<int> exclusive_part(const Topology& topology, int node, std::size_t index,
                             std::size_t count) {
  const std::map<int, std::set<int>> cores = topology.cores(node);
  if (cores.size() < count) {
    throw core::UsageError(
        kNumaFlag,
        fmt::format("{} workers share the {} cores of NUMA node {}", count, cores.size(), node),
        "start fewer workers, or use node or socket");
  }
  const std::size_t each = cores.size() / count, more = cores.size() % count;
  const std::size_t begin = index * each + std::min(index, more);
  std::set<int> result;
  auto core = std::next(cores.begin(), static_cast<std::ptrdiff_t>(begin));
  for (std::size_t i = 0; i < each + (index < more ? 1 : 0); ++i, ++core) {
    result.insert(core->second.begin(), core->second.end());
  }
  return result;
}

// The complexes with more CPUs first; workers beyond their number begin again.
std::set<int> complex_part(const Topology& topology, int node, std::size_t index) {
  const std::map<int, std::set<int>> found = topology.core_complexes(node);
  std::vector<std::set<int>> complexes;
  complexes.reserve(found.size());
  for (const auto& [first, cpus] : found) complexes.push_back(cpus);
  std::stable_sort(complexes.begin(), complexes.end(),
                   [](const auto& a, const auto& b) { return a.size() > b.size(); });
  return complexes[index % complexes.size()];
}

}  // namespace

std::set<int> parse_cpu_list(const std::string& text) {
  std::set<int> result;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at < end) {
    int first = 0;
    auto [stop, error] = std::from_chars(at, end, first);
    if (error != std::errc()) break;
    int last = first;
    if (stop < end && *stop == '-') {
      const auto more = std::from_chars(stop + 1, end, last);
      if (more.ec != std::errc()) break;
      stop = more.ptr;
    }
    for (int cpu = first; cpu <= last; ++cpu) result.insert(cpu);
    at = stop + (stop < end && *stop == ',' ? 1 : 0);
    if (at == stop && at < end) break;
  }
  return result;
}

std::string cpu_list(const std::vector<int>& cpus) {
  std::string result;
  for (std::size_t i = 0; i < cpus.size();) {
    std::size_t last = i;
    while (last + 1 < cpus.size() && cpus[last + 1] == cpus[last] + 1) ++last;
    result += fmt::format("{}{}", result.empty() ? "" : ",", cpus[i]);
    if (last > i) result += fmt::format("-{}", cpus[last]);
    i = last + 1;
  }
  return result;
}

std::vector<std::vector<int>> bind_workers(const std::string& mode, int workers,
                                           const std::vector<std::string>& gpus,
                                           const std::set<int>& allowed, const fs::path& sys) {
  if (mode != "node" && mode != "socket" && mode != "exclusive" && mode != "core-complex") {
    throw core::UsageError(kNumaFlag, fmt::format("\"{}\" is not allowed", core::printable(mode)),
                           "use one of: node, socket, exclusive, core-complex");
  }
  const auto count = static_cast<std::size_t>(workers);
  if (!gpus.empty() && gpus.size() < count) {
    throw core::UsageError(
        kNumaFlag,
        fmt::format("{}, and {} {} visible", core::counted(workers, "worker"),
                    core::counted(std::ssize(gpus), "GPU"), gpus.size() == 1 ? "is" : "are"),
        "start one worker for each GPU at most");
  }
  const Topology topology(sys, allowed);
  std::vector<int> nodes;  // NUMA node of each GPU, or of each worker without GPUs
  nodes.reserve(std::max(gpus.size(), count));
  for (const std::string& gpu : gpus) nodes.push_back(topology.node_of_gpu(gpu));
  for (std::size_t i = 0; gpus.empty() && i < count; ++i) {
    nodes.push_back(topology.node_number(i * topology.node_count() / count));
  }
  std::vector<std::vector<int>> result;
  for (std::size_t i = 0; i < count; ++i) {
    const int node = nodes[i];
    const auto of_node = std::count(nodes.begin(), nodes.end(), node);
    const auto before =
        std::count(nodes.begin(), nodes.begin() + static_cast<std::ptrdiff_t>(i), node);
    const auto index = static_cast<std::size_t>(before);
    std::set<int> cpus;
    if (mode == "node") cpus = topology.cpus_of_node(node);
    if (mode == "socket") cpus = topology.cpus_of_socket(node);
    if (mode == "exclusive") {
      cpus = exclusive_part(topology, node, index, static_cast<std::size_t>(of_node));
    }
    if (mode == "core-complex") cpus = complex_part(topology, node, index);
    result.emplace_back(cpus.begin(), cpus.end());
  }
  return result;
}

std::vector<std::vector<int>> bind_workers_here(const std::string& mode, int workers) {
  if (mode.empty()) return {};
  std::vector<std::string> pci;
  for (const Gpu& gpu : visible_gpus_here()) pci.push_back(gpu.pci);
  return bind_workers(mode, workers, pci, core::allowed_cpus());
}

}  // namespace scaletrain::launcher
