#include "launcher/output/line_prefix.h"

#include <doctest/doctest.h>

#include <cstdlib>

namespace scaletrain::launcher {
namespace {

std::string with_template(const char* text) {
  setenv("TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE", text, 1);
  std::string result = line_prefix("trainer", 12, 4);
  unsetenv("TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE");
  return result;
}

TEST_CASE("a line begins with role and local rank, or with what the template says") {
  CHECK(line_prefix("trainer", 12, 4) == "[trainer4]:");
  CHECK(with_template("[${role_name}:${local_rank}/${rank}] ") == "[trainer:4/12] ");
  CHECK(with_template("$rank-$local_rank|") == "12-4|");
}

TEST_CASE("what a template does not know stays, as Python's safe_substitute has it") {
  CHECK(with_template("$$ ${host} $ranks ${rank $ $1 ${rank}") ==
        "$ ${host} $ranks ${rank $ $1 12");
  CHECK(with_template("costs $") == "costs $");
}

}  // namespace
}  // namespace scaletrain::launcher
