#include "launcher/place/endpoint.h"

#include <doctest/doctest.h>

#include "lib/core/error.h"

namespace scaletrain::launcher {
namespace {

std::string texts(const std::string& text) {
  std::string result;
  for (const Endpoint& one : parse_endpoints(text, 29400)) result += to_text(one) + " ";
  return result;
}

TEST_CASE("one or several places, names and addresses, with a port or without") {
  CHECK(texts("a") == "a:29400 ");
  CHECK(texts("a:1,b:2") == "a:1 b:2 ");
  CHECK(texts("[fd00::1]:7,10.0.0.1") == "[fd00::1]:7 10.0.0.1:29400 ");
  CHECK(texts("[::1]") == "[::1]:29400 ");
}

TEST_CASE("what is no place is refused") {
  for (const char* text :
       {"", "a,", ",a", "a:", ":1", "[::1", "[::1]x", "[]:1", "a:x", "a:70000"}) {
    CAPTURE(text);
    CHECK_THROWS_AS(parse_endpoints(text, 1), core::UsageError);
  }
}

TEST_CASE("this host knows itself") {
  CHECK(is_own("127.0.0.1"));
  CHECK(is_own("localhost"));
  CHECK_FALSE(is_own("192.0.2.1"));  // RFC 5737: nobody's
  CHECK_FALSE(is_own("no-such-host.invalid"));
  for (const std::string& address : own_addresses()) {
    CHECK(is_own(address));
    CHECK_FALSE(address.starts_with("127."));
  }
}

}  // namespace
}  // namespace scaletrain::launcher
