#include "lib/core/process/cores.h"

#include <doctest/doctest.h>

using namespace scaletrain::core;  // NOLINT(google-build-using-namespace)

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

TEST_CASE("at least one core is paid for, and no more than there are") {
  CHECK(usable_cores() >= 1);
  CHECK(usable_cores() <= static_cast<int>(allowed_cpus().size()));
}
