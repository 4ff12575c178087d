// Reads the fields of a protobuf message in order, without a description of the message.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace scaletrain::app {

struct ProtobufField {
  std::uint32_t number = 0;
  std::uint32_t wire_type = 0;
  std::uint64_t value = 0;   // for numbers
  std::string_view bytes{};  // for strings, bytes and messages; points into the message

  bool is_varint() const { return wire_type == 0; }
  bool is_bytes() const { return wire_type == 2; }
  bool is_fixed32() const { return wire_type == 5; }
};

// Reads only inside `message`, which must outlive this object. Groups, which are not used here,
// count as damage.
class ProtobufFields {
 public:
  explicit ProtobufFields(std::string_view message) : message_(message) {}

  // Returns nullopt at the end of the message or at damage.
  std::optional<ProtobufField> next();
  bool damaged() const { return damaged_; }
  std::size_t at() const {
    return at_;
  }  // byte at which the next field, or the damaged one, begins

 private:
  std::optional<std::uint64_t> varint(std::size_t& at) const;
  std::optional<std::uint64_t> fixed(std::size_t& at, std::size_t bytes) const;
  bool read_value(ProtobufField& field, std::size_t& at) const;

  std::string_view message_;
  std::size_t at_ = 0;
  bool damaged_ = false;
};

}  // namespace scaletrain::app
