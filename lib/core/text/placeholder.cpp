#include "lib/core/text/placeholder.h"

#include <algorithm>
#include <fstream>

#include "lib/core/text/lookup.h"

namespace scaletrain::core {
namespace {

bool starts_with_any_case(std::string_view text, std::string_view lower) {
  return lower_case(text.substr(0, lower.size())) == lower;
}

std::string_view without_mark_and_blanks(std::string_view text) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  text.remove_prefix(std::min(text.find_first_not_of(" \t\r\n"), text.size()));
  return text;
}

}  // namespace

std::optional<Placeholder> find_placeholder(std::string_view start) {
  if (start.starts_with("version https://git-lfs.github.com/spec/")) {
    return Placeholder{"is a git-lfs pointer, not the file itself",
                       "fetch the file: git lfs pull, in the repository that it is from"};
  }
  constexpr const char* kDownloadAgain =
      "the server sent it instead of the file: check the address and the login, and download again";
  start = without_mark_and_blanks(start.substr(0, kPlaceholderBytes));
  if (starts_with_any_case(start, "<!doctype html") || starts_with_any_case(start, "<html")) {
    return Placeholder{"is an HTML page, not the file itself", kDownloadAgain};
  }
  if (start.starts_with("<?xml") && start.find("<Error>") != std::string_view::npos) {
    return Placeholder{"is an error message of an object store, not the file itself",
                       kDownloadAgain};
  }
  return std::nullopt;
}

std::string placeholder_bytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string start(kPlaceholderBytes, '\0');
  file.read(start.data(), static_cast<std::streamsize>(start.size()));
  start.resize(static_cast<std::size_t>(file.gcount()));
  return start;
}

}  // namespace scaletrain::core
