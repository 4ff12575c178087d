// Parses the JSON header of a safetensors file and checks every rule of the format.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace scaletrain::format {

// One tensor as the file describes it.
struct TensorInfo {
  std::string name;
  std::string dtype;  // "F32", "BF16", "F16", "F64", "I64", "I32", "U8", "BOOL", ...
  std::vector<std::int64_t> shape;
  std::int64_t begin = 0, end = 0;  // bytes, from the start of the file
};

struct SafetensorsHeader {
  std::vector<TensorInfo> tensors;  // sorted by name; begin and end from the start of the data
  std::map<std::string, std::string> metadata;
};

// Returns the element size of `dtype` in bytes; 0 if it is unknown.
std::int64_t dtype_bytes(std::string_view dtype);

// Parses the header of a file `place` with `data_bytes` bytes of data. Throws core::CheckpointError
// naming the violated rule.
SafetensorsHeader parse_safetensors_header(std::string_view text, std::int64_t data_bytes,
                                           const std::string& place);

// Advice in errors about an invalid file.
inline constexpr const char* kSafetensorsRemedy =
    "the file is damaged or is not safetensors: use another copy";

}  // namespace scaletrain::format
