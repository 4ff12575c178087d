// Encoder of Protocol Buffers messages: a message is the concatenation of its fields.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace scaletrain::track {

std::string little_endian(std::uint16_t value);
std::string little_endian(std::uint32_t value);
std::string little_endian(std::uint64_t value);

// Each function returns one field of a message: its key and its value.
std::string number_field(std::uint64_t field, std::uint64_t value);    // int64, bool, enum
std::string double_field(std::uint64_t field, double value);           // double
std::string float_field(std::uint64_t field, float value);             // float
std::string bytes_field(std::uint64_t field, std::string_view bytes);  // string, message

}  // namespace scaletrain::track
