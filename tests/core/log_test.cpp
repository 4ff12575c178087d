#include "lib/core/log.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace scaletrain::core;

TEST_CASE("a listener gets each warning when it is written, and no other line") {
  std::vector<std::string> heard;
  set_warning_listener([&](const std::string& line) { heard.push_back(line); });
  warn("{} of {}", 3, "a\x1b[31m");
  log("nothing to hear");
  set_warning_listener({});
  warn("nobody hears this");
  CHECK(heard == std::vector<std::string>{"warning: 3 of a\\x1b[31m"});
}
