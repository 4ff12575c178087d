#include "lib/track/protobuf.h"

#include <bit>
#include <cstring>

namespace scaletrain::track {
namespace {

// Wire types of Protocol Buffers.
enum class Wire : std::uint64_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

template <class T>
std::string bytes_of(T value) {
  static_assert(std::endian::native == std::endian::little);
  std::string bytes(sizeof value, '\0');
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}

std::string varint(std::uint64_t value) {
  std::string bytes;
  for (; value >= 128; value >>= 7) bytes += static_cast<char>((value & 127) | 128);
  return bytes + static_cast<char>(value);
}

std::string key(std::uint64_t field, Wire wire) {
  return varint(field << 3 | static_cast<std::uint64_t>(wire));
}

}  // namespace

std::string little_endian(std::uint16_t value) { return bytes_of(value); }
std::string little_endian(std::uint32_t value) { return bytes_of(value); }
std::string little_endian(std::uint64_t value) { return bytes_of(value); }

std::string number_field(std::uint64_t field, std::uint64_t value) {
  return key(field, Wire::kVarint) + varint(value);
}

std::string double_field(std::uint64_t field, double value) {
  return key(field, Wire::kFixed64) + bytes_of(value);
}

std::string float_field(std::uint64_t field, float value) {
  return key(field, Wire::kFixed32) + bytes_of(value);
}

std::string bytes_field(std::uint64_t field, std::string_view bytes) {
  return key(field, Wire::kBytes) + varint(bytes.size()) + std::string(bytes);
}

}  // namespace scaletrain::track
