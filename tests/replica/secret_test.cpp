#include "lib/replica/secret.h"

#include <doctest/doctest.h>

#include "tests/replica/node_support.h"

namespace scaletrain::replica {

TEST_CASE("HMAC-SHA256 is that of RFC 4231") {
  CHECK(hmac(std::string(20, '\x0b'), "Hi There") ==
        "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
  CHECK(hmac("Jefe", "what do ya want for nothing?") ==
        "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  CHECK(hmac(std::string(131, '\xaa'), "Test Using Larger Than Block-Size Key - Hash Key First") ==
        "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

TEST_CASE("the proofs of both sides differ, and so do the HMACs of equal requests") {
  Session one("secret", "a", "b"), other("secret", "b", "a");
  CHECK(one.client_proof() != one.server_proof());
  CHECK(one.client_proof() != other.client_proof());
  CHECK(one.seal_next("list") != one.seal_next("list"));
  CHECK(random_digits() != random_digits());
  CHECK(random_digits().size() == 64);
  CHECK(is_equal("ab", "ab"));
  CHECK_FALSE(is_equal("ab", "aB"));
  CHECK_FALSE(is_equal("ab", "abc"));
}

TEST_CASE("a secret is read from a file in memory") {
  CHECK(read_secret_of(test::secret_fd()) == test::kSecret);
  CHECK(read_secret_of(std::nullopt).empty());
}

}  // namespace scaletrain::replica
