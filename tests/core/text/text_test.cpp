#include "lib/core/text/text.h"

#include <doctest/doctest.h>

namespace scaletrain::core {

TEST_CASE("bytes are two hexadecimal digits each") {
  CHECK(hex(std::string_view("\x00\x0f\xff", 3)) == "000fff");
  CHECK(hex(std::string_view()).empty());
}

TEST_CASE("UTF-8 is distinguished from other bytes") {
  CHECK(is_utf8(""));
  CHECK(is_utf8("caf\xc3\xa9"));
  CHECK_FALSE(is_utf8("caf\xe9"));
  CHECK_FALSE(is_utf8("\xc0\x80"));      // an overlong zero
  CHECK_FALSE(is_utf8("\xed\xa0\x80"));  // a surrogate
  CHECK_FALSE(is_utf8("\xe2\x82"));      // ends too soon
}

TEST_CASE("a noun is in the plural unless there is one of it") {
  CHECK(counted(1, "shard") == "1 shard");
  CHECK(counted(0, "shard") == "0 shards");
  CHECK(counted(2, "micro-batch") == "2 micro-batches");
  CHECK(counted(3, "class") == "3 classes");
  CHECK(counted(2, "entry") == "2 entries");
  CHECK(counted(2, "day") == "2 days");
}

TEST_CASE("a number is the whole text") {
  CHECK(parse_number<int>("-7") == -7);
  CHECK(parse_number<unsigned>("ff", 16) == 255);
  for (const char* const text : {"", " 1", "1 ", "+1", "1x", "0x1", "2147483648"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_number<int>(text).has_value());
  }
}

}  // namespace scaletrain::core
