#include "lib/format/tar/tfrecord.h"

#include <fmt/format.h>

#include <array>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "lib/core/error.h"

namespace scaletrain::format {
namespace {

constexpr std::array<std::uint32_t, 256> kCrcTable = [] {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t i = 0; i < table.size(); ++i) {
    std::uint32_t value = i;
    for (int bit = 0; bit < 8; ++bit) {
      value = (value & 1U) != 0 ? value >> 1 ^ 0x82f63b78U : value >> 1;  // Castagnoli, reflected
    }
    table[i] = value;
  }
  return table;
}();

std::uint32_t masked(std::uint32_t crc) { return (crc >> 15 | crc << 17) + 0xa282ead8U; }

template <class Number>
Number little_endian(std::string_view bytes) {
  Number number = 0;
  std::memcpy(&number, bytes.data(), sizeof number);
  return number;
}

// The fields of one protocol buffers message, one after the other.
class Message {
 public:
  explicit Message(std::string_view bytes) : rest_(bytes) {}

  struct Field {
    std::uint64_t number = 0;
    std::uint64_t value = 0;  // set for wire type 0
    std::string_view bytes;   // set for wire type 2
    int type = 0;
  };

  bool next(Field& field) {
    if (rest_.empty()) return false;
    const std::uint64_t tag = varint(rest_);
    field = {tag >> 3, 0, {}, static_cast<int>(tag & 7U)};
    switch (field.type) {
      case 0:
        field.value = varint(rest_);
        return true;
      case 1:
        field.bytes = take(sizeof(std::uint64_t));
        return true;
      case 2:
        field.bytes = take(varint(rest_));
        return true;
      case 5:
        field.bytes = take(sizeof(std::uint32_t));
        return true;
      default:
        throw std::invalid_argument("it is not a protocol buffers message");
    }
  }

  static std::uint64_t varint(std::string_view& bytes) {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      if (bytes.empty()) break;
      const auto byte = static_cast<unsigned char>(bytes.front());
      bytes.remove_prefix(1);
      value |= std::uint64_t{byte & 0x7fU} << shift;
      if ((byte & 0x80U) == 0) return value;
    }
    throw std::invalid_argument("a number in it does not end");
  }

 private:
  std::string_view take(std::uint64_t count) {
    if (count > rest_.size()) throw std::invalid_argument("a field is longer than the message");
    const std::string_view taken = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return taken;
  }

  std::string_view rest_;
};

// Feature: 1 is BytesList, 3 Int64List; each list holds its values as field 1.
Feature parse_feature(std::string_view bytes) {
  Feature feature;
  Message message(bytes);
  for (Message::Field kind; message.next(kind);) {
    Message list(kind.bytes);
    for (Message::Field value; kind.type == 2 && list.next(value);) {
      if (value.number != 1) continue;
      if (kind.number == 1 && value.type == 2) feature.bytes.push_back(value.bytes);
      if (kind.number != 3) continue;
      if (value.type == 0) feature.numbers.push_back(static_cast<std::int64_t>(value.value));
      while (value.type == 2 && !value.bytes.empty()) {  // packed
        feature.numbers.push_back(static_cast<std::int64_t>(Message::varint(value.bytes)));
      }
    }
  }
  return feature;
}

}  // namespace

std::uint32_t crc32c(std::string_view bytes) {
  std::uint32_t crc = 0xffffffffU;
  for (const char c : bytes) {
    crc = kCrcTable[(crc ^ static_cast<unsigned char>(c)) & 0xffU] ^ crc >> 8;
  }
  return ~crc;
}

void for_each_record(const std::string& name, std::int64_t file_bytes, const ReadAt& read,
                     const std::function<void(std::string_view)>& use) {
  constexpr std::int64_t kHeaderBytes = 12, kFooterBytes = 4;
  std::string header(static_cast<std::size_t>(kHeaderBytes), '\0'), record;
  for (std::int64_t at = 0; at < file_bytes;) {
    const auto refuse = [&](const std::string& found) {
      throw core::DataError(fmt::format("{}: byte {}", name, at), found,
                            "the file is damaged, or no TFRecord: copy or write it again");
    };
    if (file_bytes - at < kHeaderBytes) refuse("ends inside a record's header");
    read(at, std::as_writable_bytes(std::span(header)));
    const std::string_view length = std::string_view(header).substr(0, 8);
    if (little_endian<std::uint32_t>(std::string_view(header).substr(8)) !=
        masked(crc32c(length))) {
      refuse("the checksum of a record's length is wrong");
    }
    const auto bytes = little_endian<std::uint64_t>(length);
    if (bytes > static_cast<std::uint64_t>(kMaxRecordBytes)) {
      refuse(fmt::format("a record of {} bytes; at most {} are allowed", bytes, kMaxRecordBytes));
    }
    const auto size = static_cast<std::int64_t>(bytes);
    if (file_bytes - at - kHeaderBytes < size + kFooterBytes) refuse("ends inside a record");
    record.resize(static_cast<std::size_t>(size + kFooterBytes));
    read(at + kHeaderBytes, std::as_writable_bytes(std::span(record)));
    const std::string_view content = std::string_view(record).substr(0, bytes);
    if (little_endian<std::uint32_t>(std::string_view(record).substr(bytes)) !=
        masked(crc32c(content))) {
      refuse("a record's checksum is wrong");
    }
    use(content);
    at += kHeaderBytes + size + kFooterBytes;
  }
}

std::map<std::string, Feature, std::less<>> parse_example(std::string_view record) {
  std::map<std::string, Feature, std::less<>> features;
  Message example(record);
  for (Message::Field part; example.next(part);) {  // Example: 1 is Features
    if (part.number != 1 || part.type != 2) continue;
    Message list(part.bytes);
    for (Message::Field entry; list.next(entry);) {  // Features: 1 is a map's entry
      if (entry.number != 1 || entry.type != 2) continue;
      std::string key;
      std::string_view value;
      Message pair(entry.bytes);
      for (Message::Field half; pair.next(half);) {  // 1 is the key, 2 the Feature
        if (half.number == 1) key = half.bytes;
        if (half.number == 2) value = half.bytes;
      }
      features[key] = parse_feature(value);
    }
  }
  return features;
}

}  // namespace scaletrain::format
