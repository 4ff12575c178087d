#include "lib/format/key_set.h"

#include <doctest/doctest.h>

#include <string>

using namespace scaletrain::format;  // NOLINT(google-build-using-namespace)

TEST_CASE("a key is new once, however many there are") {
  KeySet set;
  for (int i = 0; i < 3000; ++i) CHECK(set.insert(std::to_string(i)));  // above the first size
  CHECK(!set.insert("0"));
  CHECK(!set.insert("2999"));
  CHECK(set.insert("3000"));
}
