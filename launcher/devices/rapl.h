// Energy of CPUs and memory by Intel's and AMD's RAPL counters in /sys/class/powercap.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>

namespace scaletrain::launcher {

class Rapl {
 public:
  explicit Rapl(std::filesystem::path root = "/") : root_(std::move(root)) {}

  // Adds what was used since the last call. Counters wrap around: call it more often than every
  // minute.
  void read();

  // Joules since the first read(); nullopt if no counter can be read.
  const std::optional<double>& cpu_j() const { return cpu_j_; }
  const std::optional<double>& memory_j() const { return memory_j_; }

  // Why cpu_j() is nullopt; "": it is not.
  std::string why_not() const;

 private:
  void read_zone(const std::filesystem::path& zone, std::optional<double>& sum);

  std::filesystem::path root_;
  std::map<std::string, double> counters_;  // microjoules by zone
  std::optional<double> cpu_j_, memory_j_;
  int error_ = 0;  // of a counter that exists
};

}  // namespace scaletrain::launcher
