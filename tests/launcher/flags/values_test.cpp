#include "launcher/flags/values.h"

#include <doctest/doctest.h>

#include <string>

#include "lib/core/error.h"

namespace scaletrain::launcher {
namespace {

using std::chrono::milliseconds;

template <class Function>
std::string error_of(Function function) {
  try {
    function();
  } catch (const core::UsageError& error) {
    return error.what();
  }
  return "no error";
}

TEST_CASE("parse_duration takes milliseconds, seconds, minutes and hours") {
  CHECK(parse_duration("--grace", "500ms") == milliseconds(500));
  CHECK(parse_duration("--grace", "10s") == milliseconds(10'000));
  CHECK(parse_duration("--grace", "5m") == milliseconds(300'000));
  CHECK(parse_duration("--grace", "2h") == milliseconds(7'200'000));
  CHECK(parse_duration("--grace", "0s") == milliseconds(0));
}

TEST_CASE("parse_duration refuses anything else") {
  for (const std::string text : {"", "10", "s", "-1s", "1.5s", "10 s", "10d", "99999999999999m"}) {
    CHECK(error_of([&] { parse_duration("--grace", text); }) ==
          "--grace: \"" + text +
              "\" is not a duration\n  give a whole number and a unit: 500ms, 10s, 5m, 2h");
  }
}

TEST_CASE("parse_count takes whole numbers in the range, whole") {
  CHECK(parse_count("--node-rank", "0", 0, 7) == 0);
  CHECK(parse_count("--node-rank", "7", 0, 7) == 7);
  for (const std::string text : {"", "8", "-1", "1x", " 1", "1.0", "99999999999"}) {
    CHECK(error_of([&] { parse_count("--node-rank", text, 0, 7); }) ==
          "--node-rank: \"" + text + "\" is not allowed\n  give a whole number from 0 to 7");
  }
}

}  // namespace
}  // namespace scaletrain::launcher
