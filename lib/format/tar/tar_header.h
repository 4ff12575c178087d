// One 512-byte header block of a tar, and the records of a pax extended header.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace scaletrain::format {

struct TarHeader {
  std::string_view prefix, name;  // in the block; "" for no prefix
  char type = '0';
  std::int64_t bytes = 0;
  bool sparse = false;  // the data are pieces of a larger file

  void path_to(std::string& path) const;  // prefix and name joined; its memory is used again
};

// Throws std::invalid_argument saying what is wrong: checksum, size.
TarHeader parse_tar_header(std::span<const std::byte> block);

struct PaxRecords {
  std::optional<std::string> path;
  std::optional<std::int64_t> bytes;
  bool sparse = false;
};

// "LENGTH KEY=VALUE\n" records. Throws std::invalid_argument.
PaxRecords parse_pax(std::string_view records);

}  // namespace scaletrain::format
