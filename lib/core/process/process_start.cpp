#include "lib/core/process/process_start.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <system_error>

namespace scaletrain::core {
namespace {

std::string read_small(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

double seconds_of(clockid_t clock) {
  timespec time{};
  ::clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

}  // namespace

// The name in field 2 may contain anything, so fields are counted after its closing bracket.
std::int64_t start_ticks(pid_t pid) {
  const std::string stat = read_small(fmt::format("/proc/{}/stat", pid));
  const std::size_t bracket = stat.rfind(')');
  if (bracket == std::string::npos) return 0;
  std::istringstream fields(stat.substr(bracket + 1));
  std::string field;
  constexpr int kStartTime = 22, kAfterBracket = 3;
  for (int i = kAfterBracket; i <= kStartTime; ++i) {
    fields >> field;
    if (i == kAfterBracket && (field == "Z" || field == "X")) return 0;
  }
  return std::atoll(field.c_str());
}

double start_time(pid_t pid) {
  const std::int64_t ticks = start_ticks(pid);
  if (ticks == 0) return 0;
  const double since_boot = static_cast<double>(ticks) / static_cast<double>(sysconf(_SC_CLK_TCK));
  return seconds_of(CLOCK_REALTIME) - seconds_of(CLOCK_BOOTTIME) + since_boot;
}

std::string this_boot() {
  std::string id = read_small("/proc/sys/kernel/random/boot_id");
  return id.substr(0, id.find('\n'));
}

std::string this_pid_namespace() {
  std::error_code unknown;
  return std::filesystem::read_symlink("/proc/self/ns/pid", unknown).string();
}

}  // namespace scaletrain::core
