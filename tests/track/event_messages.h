// The messages of a TensorBoard event file.
#pragma once

#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "lib/format/tar/tfrecord.h"

namespace scaletrain::track {

// for_each_record verifies the checksums.
inline std::vector<std::string> event_messages(const std::string& file) {
  std::vector<std::string> found;
  format::for_each_record(
      "events", static_cast<std::int64_t>(file.size()),
      [&](std::int64_t offset, std::span<std::byte> into) {
        std::memcpy(into.data(), file.data() + offset, into.size());
      },
      [&](std::string_view message) { found.emplace_back(message); });
  return found;
}

}  // namespace scaletrain::track
