#include "launcher/devices/rapl.h"

#include <fmt/format.h>

#include <cerrno>
#include <vector>

#include "launcher/devices/system_files.h"
#include "lib/core/error.h"

namespace scaletrain::launcher {
namespace {

namespace fs = std::filesystem;

constexpr double kMicro = 1e-6;

std::string zone_name(const fs::path& zone) {
  std::string name = system_text(zone / "name").value_or("");
  name.erase(name.find_last_not_of('\n') + 1);
  return name;
}

}  // namespace

// Packages hold the zones "core" and "uncore", and "psys" holds packages: only packages and memory
// are added. The zones of "intel-rapl-mmio" are the same counters again.
void Rapl::read() {
  constexpr std::string_view kPrefix = "intel-rapl:";
  const fs::path folder = root_ / "sys/class/powercap";
  for (const std::string& zone : system_names(folder)) {
    if (!zone.starts_with(kPrefix)) continue;
    const std::string name = zone_name(folder / zone);
    if (name.starts_with("package")) read_zone(folder / zone, cpu_j_);
    if (name == "dram") read_zone(folder / zone, memory_j_);
  }
}

void Rapl::read_zone(const fs::path& zone, std::optional<double>& sum) {
  int error = 0;
  const std::optional<double> now = system_number(zone / "energy_uj", &error);
  if (!now) {
    error_ = error;
    return;
  }
  const auto [before, is_first] = counters_.try_emplace(zone.filename().string(), *now);
  double used = *now - before->second;
  if (used < 0) used += system_number(zone / "max_energy_range_uj").value_or(-used);
  sum = sum.value_or(0) + used * kMicro;
  before->second = *now;
}

std::string Rapl::why_not() const {
  if (cpu_j_) return "";
  if (error_ == 0) return "RAPL is absent";
  if (error_ == EACCES || error_ == EPERM) return "RAPL is not readable by this user";
  return fmt::format("RAPL cannot be read: {}", core::errno_text(error_));
}

}  // namespace scaletrain::launcher
