#include "lib/data/threads.h"

#include <doctest/doctest.h>

using namespace scaletrain::data;  // NOLINT(google-build-using-namespace)

TEST_CASE("cores are shared out evenly, what is left over to the first ranks, within the limits") {
  CHECK(share_of_cores(8, 0, 2) == 4);
  CHECK(share_of_cores(7, 0, 3) == 3);  // 3 + 2 + 2
  CHECK(share_of_cores(7, 1, 3) == 2);
  CHECK(share_of_cores(7, 2, 3) == 2);
  CHECK(share_of_cores(2, 3, 4) == 1);
  CHECK(share_of_cores(128, 0, 1) == kMaxAutomaticThreads);
}

TEST_CASE("a container's quota counts whole cores") {
  CHECK(quota_cores("200000 100000", 16) == 2);
  CHECK(quota_cores("350000 100000\n", 16) == 3);
  CHECK(quota_cores("50000 100000", 16) == 1);
  CHECK(quota_cores("9900000 100000", 16) == 16);
  for (const char* const text : {"max 100000", "", "0 100000", "100000 0", "nonsense"}) {
    CAPTURE(text);
    CHECK(quota_cores(text, 16) == 16);
  }
}

TEST_CASE("a rank gets at least one thread") {
  CHECK(automatic_threads(0, 1) >= 1);
  CHECK(automatic_threads(9, 10) >= 1);
}
