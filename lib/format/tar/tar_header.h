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
  bool sparse = false;  // the data are the non-empty ranges of a sparse file

  void path_to(std::string& path) const;  // joins prefix and name, reusing the memory of `path`
};

// Throws std::invalid_argument for a wrong checksum or size.
TarHeader parse_tar_header(std::span<const std::byte> block);

struct PaxRecords {
  std::optional<std::string> path;
  std::optional<std::int64_t> bytes;
  bool sparse = false;
};

// Parses "LENGTH KEY=VALUE\n" records. Throws std::invalid_argument.
PaxRecords parse_pax(std::string_view records);

}  // namespace scaletrain::format
