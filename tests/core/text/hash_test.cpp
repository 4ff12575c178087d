#include "lib/core/text/hash.h"

#include <doctest/doctest.h>

using scaletrain::core::Sha256;
using scaletrain::core::Xxh3;
using scaletrain::core::xxh3_64;

TEST_CASE("sha256 of \"abc\" is the digest of FIPS 180-2, whole or in parts") {
  const std::string expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
  CHECK(Sha256().update("abc").hex() == expected);
  CHECK(Sha256().update("a").update("").update("bc").hex() == expected);
}

TEST_CASE("xxh3 is what xxhsum -H128 prints, whole or in parts") {
  const auto update = [](Xxh3& hash, std::string_view text) {
    hash.update(std::as_bytes(std::span(text)));
  };
  Xxh3 whole, parts;
  update(whole, "abc");
  for (const char* part : {"a", "", "bc"}) update(parts, part);
  CHECK(whole.hex() == "06b05ab6733a618578af5f94892f3950");
  CHECK(parts.hex() == whole.hex());
}

TEST_CASE("xxh3_64 of nothing is the published value, and the seed matters") {
  CHECK(xxh3_64("") == 0x2d06800538d394c2);
  CHECK(xxh3_64("a", 0) != xxh3_64("a", 1));
}
