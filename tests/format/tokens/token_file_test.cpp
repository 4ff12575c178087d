#include "lib/format/tokens/token_file.h"

#include <doctest/doctest.h>

#include <vector>

using namespace scaletrain::format;  // NOLINT(google-build-using-namespace)

TEST_CASE("tokens of 16 and 32 bits are little-endian") {
  const std::vector<std::uint32_t> tokens{1, 0xabcd, 65535};
  CHECK(encode_tokens(tokens, 2) == std::string("\x01\0\xcd\xab\xff\xff", 6));
  CHECK(encode_tokens({tokens.data(), 2}, 4) == std::string("\x01\0\0\0\xcd\xab\0\0", 8));
  CHECK(encode_tokens({}, 2).empty());
}

TEST_CASE("the header of llm.c is 256 numbers of 32 bits: magic, version, count, zeros") {
  const std::string rest(1024 - 12, '\0');
  // 20240520 is 0x0134d888, 20240801 is 0x0134d9a1.
  CHECK(llmc_header(5, 2) == std::string("\x88\xd8\x34\x01\x01\0\0\0\x05\0\0\0", 12) + rest);
  CHECK(llmc_header(258, 4) == std::string("\xa1\xd9\x34\x01\x07\0\0\0\x02\x01\0\0", 12) + rest);
}
