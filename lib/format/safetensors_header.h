// The JSON header of a safetensors file, checked against every rule of the format.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "lib/format/safetensors.h"

namespace scaletrain::format {

struct SafetensorsHeader {
  std::vector<TensorInfo> tensors;  // by name; begin and end from the start of the data
  std::map<std::string, std::string> metadata;
};

// Parses the header of a file `place` with `data_bytes` bytes behind it. Throws
// core::CheckpointError naming the rule that is broken.
SafetensorsHeader parse_safetensors_header(std::string_view text, std::int64_t data_bytes,
                                           const std::string& place);

// What to do about a file that breaks a rule.
inline constexpr const char* kSafetensorsRemedy =
    "the file is damaged or is not safetensors: use another copy";

}  // namespace scaletrain::format
