// The samples of a tar from its first to its last, with their bytes: for reading through whole
// shards. The file is read in large pieces and handed out without a copy.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/format/tar.h"

namespace scaletrain::format {

struct StreamedField {
  std::string_view extension;  // as stored
  std::string_view bytes;
};

// Members with one key that stand next to one another; valid during the call that gets it.
struct StreamedSample {
  std::string_view key;
  std::vector<StreamedField> fields;
};

// Calls `use` for every sample in file order. Members that are no part of a sample are passed over.
// Throws what TarReader throws, and core::DataError where one sample has above 256 MiB.
void for_each_streamed(const std::string& name, std::int64_t file_bytes, const ReadAt& read,
                       const std::function<void(const StreamedSample&)>& use);

}  // namespace scaletrain::format
