#include "lib/core/text/home.h"

#include <fmt/format.h>
#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <optional>
#include <utility>

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

// Returns NAME of "~NAME/..."; "" for "~/...", nullopt for other paths.
std::optional<std::string> user_of(const std::string& path) {
  if (!path.starts_with('~')) return std::nullopt;
  std::string user = path.substr(1, std::min(path.find('/'), path.size()) - 1);
  const bool is_name = std::all_of(user.begin(), user.end(), [](unsigned char one) {
    return std::isalnum(one) != 0 || one == '.' || one == '_' || one == '-';
  });
  return is_name ? std::optional(std::move(user)) : std::nullopt;
}

}  // namespace

std::string expand_home(std::string path) {
  const std::optional<std::string> user = user_of(path);
  const std::optional<std::string> home = user ? home_of(*user) : std::nullopt;
  return home ? *home + path.substr(1 + user->size()) : path;
}

std::string home_fault(const std::string& path) {
  const std::optional<std::string> user = user_of(path);
  if (!user || home_of(*user)) return "";
  return user->empty() ? "HOME is not set, and the user of this process has no home"
                       : fmt::format("there is no user \"{}\" on this machine", *user);
}

}  // namespace scaletrain::core
