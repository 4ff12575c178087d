#include "lib/data/image/view.h"

#include <doctest/doctest.h>

using namespace scaletrain::data;  // NOLINT(google-build-using-namespace)

TEST_CASE("fitted resizes the shorter side and keeps the centre") {
  CHECK(fitted(6, 2, 2, 2) == View{{{0, 6}, {0, 2}}, 6, 2, {{2, 2}, {0, 2}}});
  // The longer side is rounded down: 500 * 256 / 375 = 341.3; (341 - 224) / 2 = 58.5 becomes 58.
  CHECK(fitted(500, 375, 256, 224, Filter::kBicubic) ==
        View{{{0, 500}, {0, 375}}, 341, 256, {{58, 224}, {16, 224}}, Filter::kBicubic});
  // Half of 7 is 3.5, rounded to the even 4; half of 9 is 4.5, rounded to the even 4.
  CHECK(fitted(1, 8, 1, 1).window.y == Range{4, 1});
  CHECK(fitted(1, 10, 1, 1).window.y == Range{4, 1});
}

TEST_CASE("resized keeps everything of the source") {
  CHECK(resized({{3, 40}, {5, 20}}, 8) == View{{{3, 40}, {5, 20}}, 8, 8, {{0, 8}, {0, 8}}});
}
