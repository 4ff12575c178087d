#include "lib/core/disk/temporary_name.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "lib/core/process/process_start.h"
#include "lib/core/text/hash.h"
#include "lib/core/text/text.h"

namespace scaletrain::core {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kTemporary = ".tmp.";

// Identifies the boot and the process namespace of this process.
std::string this_place() {
  static const std::string place = fmt::format(
      "{:08x}", static_cast<std::uint32_t>(xxh3_64(this_boot() + " " + this_pid_namespace())));
  return place;
}

std::string identity_of(pid_t writer) {
  return fmt::format("{}-{}", start_ticks(writer), this_place());
}

bool is_identity(std::string_view text) {
  constexpr std::size_t kPlaceDigits = 8;
  const std::size_t dash = std::min(text.find('-'), text.size());
  return parse_number<std::int64_t>(text.substr(0, dash)) &&
         text.size() == dash + 1 + kPlaceDigits &&
         parse_number<std::uint32_t>(text.substr(dash + 1), 16);
}

// A number that was given to another process after the last change is another process's.
bool started_before_change(const fs::path& path, pid_t writer) {
  constexpr double kClockSlack = 2;  // seconds: start times are rounded, file systems' clocks too
  struct stat status = {};
  if (::lstat(path.c_str(), &status) != 0) return false;
  return start_time(writer) <= static_cast<double>(status.st_mtim.tv_sec) + kClockSlack;
}

}  // namespace

std::string temporary_name(const std::string& name, pid_t writer) {
  return fmt::format("{}{}{}-{}", name, kTemporary, writer, identity_of(writer));
}

std::optional<Temporary> parse_temporary(const std::string& name) {
  const std::size_t at = name.rfind(kTemporary);
  if (at == std::string::npos) return std::nullopt;
  const std::string rest = name.substr(at + kTemporary.size());
  const std::size_t dash = std::min(rest.find('-'), rest.size());
  const auto writer = parse_number<int>(rest.substr(0, dash));
  if (!writer || *writer < 0) return std::nullopt;
  Temporary temporary{.name = name.substr(0, at), .writer = *writer};
  if (dash == rest.size()) return temporary;
  temporary.identity = rest.substr(dash + 1);
  return is_identity(temporary.identity) ? std::optional(temporary) : std::nullopt;
}

bool has_living_writer(const fs::path& path, const Temporary& temporary) {
  if (start_ticks(temporary.writer) == 0) return false;
  if (!temporary.identity.empty()) return temporary.identity == identity_of(temporary.writer);
  return temporary.writer != 1 && started_before_change(path, temporary.writer);
}

}  // namespace scaletrain::core
