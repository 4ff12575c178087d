#include "lib/format/key_set.h"

#include <doctest/doctest.h>

#include <string>

using namespace scaletrain::format;  // NOLINT(google-build-using-namespace)

namespace {

KeySet keys(int begin, int end) {
  KeySet set;
  for (int i = begin; i < end; ++i) CHECK(set.insert(std::to_string(i)));
  return set;
}

}  // namespace

TEST_CASE("a key is new once, however many there are") {
  KeySet set = keys(0, 3000);  // above the first size
  CHECK(!set.insert("0"));
  CHECK(!set.insert("2999"));
  CHECK(set.insert("3000"));
}

TEST_CASE("sets overlap where they have a key in common") {
  CHECK(!KeySet().overlaps(KeySet()));
  CHECK(!keys(0, 10).overlaps(KeySet()));
  CHECK(!keys(0, 1000).overlaps(keys(1000, 1010)));
  CHECK(keys(0, 1001).overlaps(keys(1000, 1010)));
  CHECK(keys(1000, 1010).overlaps(keys(0, 1001)));
}
