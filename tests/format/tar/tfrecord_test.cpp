#include "lib/format/tar/tfrecord.h"

#include <doctest/doctest.h>

#include <cstring>
#include <stdexcept>

#include "tests/format/tar/tar_support.h"

using namespace scaletrain::format;  // NOLINT(google-build-using-namespace)

namespace {

std::string number(std::uint64_t value, std::size_t bytes) {
  return {reinterpret_cast<const char*>(&value), bytes};
}

std::uint32_t masked(std::uint32_t crc) { return (crc >> 15 | crc << 17) + 0xa282ead8U; }

std::string record(const std::string& content) {
  const std::string length = number(content.size(), 8);
  return length + number(masked(crc32c(length)), 4) + content + number(masked(crc32c(content)), 4);
}

std::vector<std::string> records_of(const std::string& file) {
  std::vector<std::string> records;
  const std::string name = "a.tfrecord";
  for_each_record(
      name, static_cast<std::int64_t>(file.size()),
      [&](std::int64_t offset, std::span<std::byte> out) {
        if (!out.empty()) std::memcpy(out.data(), file.data() + offset, out.size());
      },
      [&](std::string_view content) { records.emplace_back(content); });
  return records;
}

// A field of wire type 2.
std::string field(int tag, const std::string& content) {
  return std::string{static_cast<char>(tag << 3 | 2), static_cast<char>(content.size())} + content;
}

std::string feature(const std::string& name, const std::string& value) {
  return field(1, field(1, field(1, name) + field(2, value)));
}

}  // namespace

TEST_CASE("crc32c is that of RFC 3720, appendix B.4") {
  CHECK(crc32c(std::string(32, '\0')) == 0x8a9136aaU);
  CHECK(crc32c(std::string(32, '\xff')) == 0x62a8ab43U);
  CHECK(crc32c("123456789") == 0xe3069283U);
}

TEST_CASE("records are read in order, and each damage is named") {
  const std::string sound = record("one") + record("") + record(std::string(70000, 'x'));
  CHECK(records_of(sound) == std::vector<std::string>{"one", "", std::string(70000, 'x')});
  CHECK(records_of("").empty());
  const std::string remedy = "\n  the file is damaged, or no TFRecord: copy or write it again";
  const auto error = [](const std::string& file) { return message_of([&] { records_of(file); }); };
  // "one" takes 12 + 3 + 4 bytes.
  CHECK(error(sound.substr(0, 25)) ==
        "a.tfrecord: byte 19: ends inside a record's header" + remedy);
  CHECK(error(sound.substr(0, 18)) == "a.tfrecord: byte 0: ends inside a record" + remedy);
  std::string damaged = sound;
  damaged[13] = 'N';
  CHECK(error(damaged) == "a.tfrecord: byte 0: a record's checksum is wrong" + remedy);
  damaged[0] = 4;
  CHECK(error(damaged) ==
        "a.tfrecord: byte 0: the checksum of a record's length is wrong" + remedy);
  const std::string huge = number(std::uint64_t{1} << 62, 8);
  CHECK(error(huge + number(masked(crc32c(huge)), 4)) ==
        "a.tfrecord: byte 0: a record of 4611686018427387904 bytes; at most 268435456 are allowed" +
            remedy);
}

TEST_CASE("features of an Example are bytes and whole numbers, packed or not") {
  const std::string bytes = feature("image", field(1, field(1, "pixels") + field(1, "more")));
  const std::string plain = feature("label", field(3, std::string("\x08\x07", 2)));
  const std::string packed = feature("boxes", field(3, field(1, std::string("\x01\xac\x02", 3))));
  const std::string floats = feature("score", field(2, field(1, "abcd")));
  const std::string example = bytes + plain + packed + floats;  // its parts merge
  const auto features = parse_example(example);
  CHECK(features.at("image").bytes == std::vector<std::string_view>{"pixels", "more"});
  CHECK(features.at("label").numbers == std::vector<std::int64_t>{7});
  CHECK(features.at("boxes").numbers == std::vector<std::int64_t>{1, 300});
  CHECK(features.at("score").numbers.empty());
  CHECK_THROWS_AS(parse_example(example.substr(0, example.size() - 1)), std::invalid_argument);
  CHECK_THROWS_AS(parse_example("\xff\xff"), std::invalid_argument);
}
