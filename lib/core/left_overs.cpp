#include "lib/core/left_overs.h"

#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <string_view>

#include "lib/core/read_faults.h"
#include "lib/core/text.h"

namespace scaletrain::core {
namespace {

constexpr std::string_view kTemporary = ".tmp.";

bool is_another_that_lives(int pid) {
  return pid != ::getpid() && (::kill(pid, 0) == 0 || errno == EPERM);
}

}  // namespace

std::optional<int> pid_of_temporary(const std::string& name) {
  const std::size_t at = name.rfind(kTemporary);
  if (at == std::string::npos) return std::nullopt;
  const auto pid = parse_number<int>(std::string_view(name).substr(at + kTemporary.size()));
  return pid && *pid >= 0 ? pid : std::nullopt;
}

void remove_left_overs(Disk& disk, const std::filesystem::path& folder) {
  for (const std::string& name : names_in(folder)) {
    const std::optional<int> pid = pid_of_temporary(name);
    if (pid && !is_another_that_lives(*pid)) disk.remove_all(folder / name);
  }
}

}  // namespace scaletrain::core
