// What tests of remote storage share.
#pragma once

#include <string>

#include "lib/core/error.h"
#include "lib/storage/storage.h"

namespace scaletrain::storage {

// The bytes from `offset` on, as text.
inline std::string read_text(const Object& object, std::int64_t offset, std::size_t bytes) {
  std::string text(bytes, '\0');
  object.read(offset, std::as_writable_bytes(std::span(text)));
  return text;
}

inline std::string read_all(Stream& stream) {
  std::string text;
  std::string part(1000, '\0');
  while (const std::size_t got = stream.read(std::as_writable_bytes(std::span(part)))) {
    text.append(part, 0, got);
  }
  return text;
}

// "65 TEXT" of what `body` throws, with its exit code in front.
template <class Body>
std::string thrown_by(const Body& body) {
  try {
    body();
  } catch (const core::Error& error) {
    return std::to_string(static_cast<int>(error.exit_code())) + " " + error.what();
  }
  return "nothing was thrown";
}

}  // namespace scaletrain::storage
