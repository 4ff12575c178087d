#include "lib/data/loader/jpeg_warnings.h"

#include <doctest/doctest.h>

#include <vector>

#include "lib/core/log.h"

namespace scaletrain::data {
namespace {

TEST_CASE("each picture is counted once, the first are named, and the sum is reported at the end") {
  std::vector<std::string> heard;
  core::set_warning_listener([&](const std::string& line) { heard.push_back(line); });
  {
    JpegWarnings warnings;
    warnings.add("a", "cut");
    warnings.add("a", "cut");
    CHECK(warnings.count() == 1);
    for (const char* place : {"b", "c", "d", "e", "f", "g"}) warnings.add(place, "cut");
    CHECK(warnings.count() == 7);
  }
  core::set_warning_listener({});
  REQUIRE(heard.size() == 6);
  CHECK(heard[0] == "warning: a: cut; it is used anyway");
  CHECK(heard[4] == "warning: e: cut; it is used anyway, and more of them are only counted");
  CHECK(heard[5] == "warning: 7 pictures were used although libjpeg warned of them");
}

}  // namespace
}  // namespace scaletrain::data
