#include "launcher/plan/memory_fit.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <limits>
#include <numeric>
#include <optional>
#include <string_view>

namespace scaletrain::launcher {
namespace {

namespace fs = std::filesystem;

// The number that `text` begins with; nullopt for another text, such as "max".
std::optional<double> leading_number(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end == text.data()) return std::nullopt;
  return static_cast<double>(value);
}

std::string first_line(const fs::path& file) {
  std::ifstream stream(file);
  std::string line;
  std::getline(stream, line);
  return line;
}

double total_of_meminfo(const fs::path& root) {
  constexpr double kKibibyte = 1024;
  std::ifstream stream(root / "proc/meminfo");
  for (std::string line; std::getline(stream, line);) {
    constexpr std::string_view kName = "MemTotal:";
    if (!line.starts_with(kName)) continue;
    const std::size_t digits = line.find_first_not_of(' ', kName.size());
    if (digits == std::string::npos) return 0;
    return leading_number(std::string_view(line).substr(digits)).value_or(0) * kKibibyte;
  }
  return 0;
}

// Smallest memory.max from the cgroup of this process up to the root.
double limit_of_cgroups(const fs::path& root) {
  double limit = std::numeric_limits<double>::infinity();
  std::ifstream stream(root / "proc/self/cgroup");
  for (std::string line; std::getline(stream, line);) {
    constexpr std::string_view kUnified = "0::/";  // cgroup v2
    if (!line.starts_with(kUnified)) continue;
    fs::path group = line.substr(kUnified.size());
    while (true) {
      const fs::path file = root / "sys/fs/cgroup" / group / "memory.max";
      limit = std::min(limit, leading_number(first_line(file)).value_or(limit));
      if (group.empty()) break;
      group = group.parent_path();
    }
  }
  return limit;
}

}  // namespace

double MemoryFit::total() const {
  return std::accumulate(shares.begin(), shares.end(), 0.0,
                         [](double sum, const MemoryShare& one) { return sum + one.bytes; });
}

// The figures of a GPU come from NVIDIA's and PyTorch's documentation; no device has measured them
// for this program yet.
double reserve_bytes(bool on_gpu, int groups, double temporary_bytes) {
  constexpr double kProgram = 0.25e9;     // resident memory of a worker with LibTorch on a CPU
  constexpr double kContext = 0.6e9;      // CUDA context with the kernels of LibTorch
  constexpr double kWorkspace = 0.034e9;  // cuBLAS on Hopper: 32 MiB
  constexpr double kGroup = 0.2e9;        // a communicator: channels x protocols x NCCL_BUFFSIZE
  constexpr double kFragmented = 0.04;
  if (!on_gpu) return kProgram;
  return kContext + kWorkspace + groups * kGroup + kFragmented * temporary_bytes;
}

double machine_memory_bytes(const fs::path& root) {
  const double total = total_of_meminfo(root);
  return total > 0 ? std::min(total, limit_of_cgroups(root)) : 0;
}

}  // namespace scaletrain::launcher
