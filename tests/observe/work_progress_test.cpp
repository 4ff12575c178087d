#include "lib/observe/work_progress.h"

#include <doctest/doctest.h>

#include "tests/observe/observe_support.h"

using namespace scaletrain::observe;  // NOLINT(google-build-using-namespace)

TEST_CASE("the line of counted work shows the rate and what is left") {
  // A quarter is done in 10 s: 30 s are left; 5 MB in 10 s are 0.5 MB/s.
  const WorkState state{"packing", 25, 100, 5'000'000, 10};
  CHECK(work_text(state, 41) == "packing 25/100  0.5 MB/s  left 30s");
  CHECK(work_text(state, 55) == "[====>             ] packing 25/100  0.5 MB/s  left 30s");
  CHECK(work_text(state, 7) == "packing");
}

TEST_CASE("work whose end is not known has no bar and no time left") {
  CHECK(work_text({"reading", 7, 0, 0, 3}, 60) == "reading 7");
  CHECK(work_text({"reading", 0, 9, 0, 0}, 12) == "reading 0/9");
}
