#include "app/tokenizer/protobuf_fields.h"

#include <limits>

namespace scaletrain::app {

std::optional<std::uint64_t> ProtobufFields::varint(std::size_t& at) const {
  std::uint64_t value = 0;
  for (unsigned shift = 0; shift < 70 && at < message_.size(); shift += 7) {
    const auto byte = static_cast<unsigned char>(message_[at++]);
    value |= static_cast<std::uint64_t>(byte & 0x7fU) << shift;
    if (byte < 0x80) return value;
  }
  return std::nullopt;
}

std::optional<std::uint64_t> ProtobufFields::fixed(std::size_t& at, std::size_t bytes) const {
  if (message_.size() - at < bytes) return std::nullopt;
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < bytes; ++i) {
    value |= static_cast<std::uint64_t>(static_cast<unsigned char>(message_[at + i])) << (8 * i);
  }
  at += bytes;
  return value;
}

bool ProtobufFields::read_value(ProtobufField& field, std::size_t& at) const {
  std::optional<std::uint64_t> value;
  if (field.wire_type == 0 || field.wire_type == 2) value = varint(at);
  if (field.wire_type == 1) value = fixed(at, 8);
  if (field.wire_type == 5) value = fixed(at, 4);
  if (!value) return false;
  field.value = *value;
  if (!field.is_bytes()) return true;
  if (*value > message_.size() - at) return false;
  field.bytes = message_.substr(at, static_cast<std::size_t>(*value));
  at += field.bytes.size();
  return true;
}

std::optional<ProtobufField> ProtobufFields::next() {
  if (damaged_ || at_ == message_.size()) return std::nullopt;
  std::size_t at = at_;
  ProtobufField field;
  const auto tag = varint(at);
  // protobuf cuts longer tags off, and would see another field.
  if (tag && *tag <= std::numeric_limits<std::uint32_t>::max() && *tag >= 8) {
    field.number = static_cast<std::uint32_t>(*tag >> 3U);
    field.wire_type = static_cast<std::uint32_t>(*tag & 7U);
    if (read_value(field, at)) {
      at_ = at;
      return field;
    }
  }
  damaged_ = true;
  return std::nullopt;
}

}  // namespace scaletrain::app
