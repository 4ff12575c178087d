#include "lib/track/protobuf.h"

#include <doctest/doctest.h>

namespace scaletrain::track {

using std::string_literals::operator""s;

TEST_CASE("numbers are varints") {
  CHECK(number_field(1, 0) == "\x08\0"s);
  CHECK(number_field(1, 150) == "\x08\x96\x01"s);
  CHECK(number_field(17, 1) == "\x88\x01\x01"s);
  CHECK(number_field(1, ~std::uint64_t{0}) == "\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"s);
}

TEST_CASE("floating-point numbers have a fixed width") {
  CHECK(double_field(1, 1.5) == "\x09\0\0\0\0\0\0\xf8\x3f"s);
  CHECK(float_field(2, 0.5F) == "\x15\0\0\0\x3f"s);
}

TEST_CASE("strings and messages have their length in front") {
  CHECK(bytes_field(2, "testing") == "\x12\x07"s + "testing");
  CHECK(bytes_field(16, std::string(200, 'a')) == "\x82\x01\xc8\x01"s + std::string(200, 'a'));
}

TEST_CASE("integers of a frame are little-endian") {
  CHECK(little_endian(std::uint16_t{0xBEE1}) == "\xe1\xbe"s);
  CHECK(little_endian(std::uint32_t{1}) == "\x01\0\0\0"s);
  CHECK(little_endian(std::uint64_t{258}) == "\x02\x01\0\0\0\0\0\0"s);
}

}  // namespace scaletrain::track
