#include "lib/storage/digest.h"

#include <doctest/doctest.h>

#include "lib/core/text/text.h"

using namespace scaletrain::storage;  // NOLINT(google-build-using-namespace)

TEST_CASE("hmac_sha256 gives the vectors of RFC 4231") {
  CHECK(scaletrain::core::hex(hmac_sha256("Jefe", "what do ya want for nothing?")) ==
        "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  CHECK(scaletrain::core::hex(hmac_sha256(
            std::string(131, '\xaa'), "Test Using Larger Than Block-Size Key - Hash Key First")) ==
        "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

TEST_CASE("MD5 gives the vectors of RFC 1321, however the text is cut") {
  Md5 digest;
  for (const std::string_view part : {"message", " digest"}) {
    digest.update(std::as_bytes(std::span(part)));
  }
  CHECK(digest.hex() == "f96b697d7cb7938d525a2f31aaf161d0");
  CHECK(Md5().hex() == "d41d8cd98f00b204e9800998ecf8427e");
}
