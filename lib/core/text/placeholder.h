// Files that contain something else than the data: git-lfs pointers, and a server's error pages
// that were saved under the file's name.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "lib/core/error.h"

namespace scaletrain::core {

inline constexpr std::size_t kPlaceholderBytes = 512;  // at the start of a file, enough to know one

struct Placeholder {
  std::string found, remedy;  // as in core::Error
};

// Returns the kind of placeholder whose file starts with `start`; nullopt for other files.
std::optional<Placeholder> find_placeholder(std::string_view start);

// Throws `Error`, such as core::DataError, naming `place` if a file that starts with `start` is a
// placeholder.
template <class Error = DataError>
void refuse_placeholder(const std::string& place, std::string_view start) {
  if (auto placeholder = find_placeholder(start)) {
    throw Error(place, std::move(placeholder->found), std::move(placeholder->remedy));
  }
}

// Returns the first kPlaceholderBytes bytes of a local file; "" if it cannot be read, which its
// reader reports.
std::string placeholder_bytes(const std::string& path);

// Throws the same error for the local file at `path`.
template <class Error = DataError>
void refuse_placeholder_file(const std::string& path) {
  refuse_placeholder<Error>(path, placeholder_bytes(path));
}

}  // namespace scaletrain::core
