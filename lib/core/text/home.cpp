#include "lib/core/text/home.h"

#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <optional>

namespace scaletrain::core {
namespace {

constexpr std::size_t kMostOfEntry = 16 << 10;  // bytes of a line of /etc/passwd

// Returns a user's home; "" is the user of this process.
std::optional<std::string> home_of(const std::string& user) {
  const char* const variable = std::getenv("HOME");
  if (user.empty() && variable != nullptr && *variable != '\0') return variable;
  passwd entry{};
  passwd* found = nullptr;
  std::array<char, kMostOfEntry> texts{};
  if (user.empty()) {
    getpwuid_r(geteuid(), &entry, texts.data(), texts.size(), &found);
  } else {
    getpwnam_r(user.c_str(), &entry, texts.data(), texts.size(), &found);
  }
  if (found == nullptr || found->pw_dir == nullptr) return std::nullopt;
  return found->pw_dir;
}

}  // namespace

std::string expand_home(std::string path) {
  if (!path.starts_with('~')) return path;
  const std::size_t end = std::min(path.find('/'), path.size());
  const std::optional<std::string> home = home_of(path.substr(1, end - 1));
  return home ? *home + path.substr(end) : path;
}

}  // namespace scaletrain::core
