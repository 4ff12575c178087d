#include "lib/data/loader/threads.h"

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

TEST_CASE("a rank gets at least one thread") {
  CHECK(automatic_threads(0, 1) >= 1);
  CHECK(automatic_threads(9, 10) >= 1);
}
