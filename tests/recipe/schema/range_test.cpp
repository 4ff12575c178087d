#include "lib/recipe/schema/range.h"

#include <doctest/doctest.h>

#include <limits>

namespace scaletrain::recipe {

TEST_CASE("a range contains its ends only where it says so, and never NaN") {
  CHECK(from(1).to(3).contains(1));
  CHECK(from(1).to(3).contains(3));
  CHECK_FALSE(from(1).to(3).contains(3.1));
  CHECK_FALSE(above(0).below(1).contains(0));
  CHECK_FALSE(above(0).below(1).contains(1));
  CHECK_FALSE(from(0).contains(std::numeric_limits<double>::quiet_NaN()));
}

TEST_CASE("a range says what it contains") {
  CHECK(from(8).to(4096).phrase() == "from 8 to 4096");
  CHECK(from(0).below(1).phrase() == "of at least 0 and below 1");
  CHECK(above(0).to(1000000).phrase() == "above 0 and at most 1000000");
  CHECK(above(0).phrase() == "above 0");
  CHECK(from(0.5).phrase() == "of at least 0.5");
}

}  // namespace scaletrain::recipe
