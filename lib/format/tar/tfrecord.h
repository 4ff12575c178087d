// TFRecord files and the tf.train.Example messages in them, for imports.
//
// A record is a length of 8 bytes, its masked CRC-32C, the bytes, and their masked CRC-32C
// (tensorflow/core/lib/io/record_writer.h).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/format/tar/tar.h"

namespace scaletrain::format {

std::uint32_t crc32c(std::string_view bytes);

inline constexpr std::int64_t kMaxRecordBytes = std::int64_t{256} << 20;

// Calls `use` for every record in file order. Throws core::DataError naming `name` and byte for a
// wrong checksum, an incomplete record, or one above kMaxRecordBytes.
void for_each_record(const std::string& name, std::int64_t file_bytes, const ReadAt& read,
                     const std::function<void(std::string_view)>& use);

// One feature of an Example: bytes or integers; floating-point values are left out.
struct Feature {
  std::vector<std::string_view> bytes;  // into the record
  std::vector<std::int64_t> numbers;
};

// Parses an Example message. Throws std::invalid_argument for other bytes.
std::map<std::string, Feature, std::less<>> parse_example(std::string_view record);

}  // namespace scaletrain::format
