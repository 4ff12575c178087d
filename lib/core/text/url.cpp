#include "lib/core/text/url.h"

#include <algorithm>
#include <array>

#include "lib/core/log.h"
#include "lib/core/printable.h"
#include "lib/core/text/lookup.h"

namespace scaletrain::core {
namespace {

constexpr std::string_view kPipe = "pipe:";
constexpr std::string_view kAfterScheme = "://";

bool is_scheme_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '+' || c == '-' || c == '.';
}

// [user:password@]host[:port] of a URL.
std::string_view authority(std::string_view url) {
  const std::size_t begin = url.find(kAfterScheme) + kAfterScheme.size();
  return url.substr(begin, std::min(url.find_first_of("/?#", begin), url.size()) - begin);
}

std::string_view without_query(std::string_view text) {
  return text.substr(0, text.find_first_of("?#"));
}

std::string_view after_last_slash(std::string_view text) {
  return text.substr(text.rfind('/') + 1);  // npos + 1 is 0
}

// The last word of a command that looks like a file, without its folders and query.
std::string_view file_of_command(std::string_view command) {
  std::string_view found;
  while (!command.empty()) {
    const std::size_t end = std::min(command.find_first_of(" \t\n|;&<>'\"()"), command.size());
    const std::string_view word = after_last_slash(without_query(command.substr(0, end)));
    if (word.find(".tar") != std::string_view::npos && word.find('=') == std::string_view::npos) {
      found = word;
    }
    command.remove_prefix(std::min(end + 1, command.size()));
  }
  return found;
}

std::string shown_command(std::string_view command) {
  const std::string_view program = command.substr(0, command.find(' '));
  const std::string_view file = file_of_command(command);
  std::string text(kPipe);
  // A word such as TOKEN=x before the program is no program.
  if (program.find('=') == std::string_view::npos) text += program;
  if (program.size() < command.size()) text += " ...";
  if (!file.empty()) text += " " + std::string(file);
  return printable(text);
}

}  // namespace

std::string_view url_scheme(std::string_view path) {
  if (path.starts_with(kPipe)) return path.substr(0, kPipe.size() - 1);
  const std::size_t end = path.find(kAfterScheme);
  if (end == std::string_view::npos || end == 0) return {};
  const std::string_view scheme = path.substr(0, end);
  return std::all_of(scheme.begin(), scheme.end(), is_scheme_character) ? scheme
                                                                        : std::string_view();
}

std::string shown_path(std::string_view path) {
  const std::string_view scheme = url_scheme(path);
  if (scheme.empty()) return printable(path);
  if (scheme == "pipe") return shown_command(path.substr(kPipe.size()));
  std::string text(path);
  if (scheme != "s3" && scheme != "gs") {  // keys may contain '?' and '#'
    const std::size_t query = text.find_first_of("?#");
    if (query != std::string::npos) text.replace(query + 1, std::string::npos, "***");
  }
  const std::string_view host = authority(path);
  const std::size_t at = host.rfind('@');
  if (at != std::string_view::npos) text.replace(scheme.size() + kAfterScheme.size(), at, "***");
  return printable(text);
}

std::string base_name(std::string_view path) {
  const std::string_view scheme = url_scheme(path);
  if (scheme == "pipe") {
    const std::string_view file = file_of_command(path);
    return std::string(file.empty() ? "pipe" : file);
  }
  const bool has_query = scheme == "http" || scheme == "https";
  return std::string(after_last_slash(has_query ? without_query(path) : path));
}

bool holds_secret(std::string_view url) {
  const std::string_view scheme = url_scheme(url);
  if (scheme.empty() || scheme == "pipe") return false;
  if (authority(url).find('@') != std::string_view::npos) return true;
  const std::size_t query = url.find('?');
  if (query == std::string_view::npos || (scheme != "http" && scheme != "https")) return false;
  const std::string lower = lower_case(url.substr(query));
  constexpr std::array<std::string_view, 8> kSecretNames{
      "sig", "key", "token", "secret", "passwd", "auth", "credential", "password"};
  return std::any_of(kSecretNames.begin(), kSecretNames.end(), [&lower](std::string_view name) {
    return lower.find(name) != std::string::npos;
  });
}

}  // namespace scaletrain::core
