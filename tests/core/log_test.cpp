#include "lib/core/log.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace scaletrain::core;

TEST_CASE("control characters are written out, so that a name cannot change the terminal") {
  CHECK(escape_control("a\x1b[31mb\n\t\x7f") == "a\\x1b[31mb\\n\\t\\x7f");
  CHECK(escape_control("gr\xc3\xbc\xc3\x9f") == "gr\xc3\xbc\xc3\x9f");
}

TEST_CASE("a listener hears each warning as it is written, and no other line") {
  std::vector<std::string> heard;
  set_warning_listener([&](const std::string& line) { heard.push_back(line); });
  warn("{} of {}", 3, "a\x1b[31m");
  log("nothing to hear");
  set_warning_listener({});
  warn("nobody hears this");
  CHECK(heard == std::vector<std::string>{"warning: 3 of a\\x1b[31m"});
}
