#include "lib/core/process/host.h"

#include <doctest/doctest.h>

#include <string>

#include "lib/core/error.h"

namespace scaletrain::core {

TEST_CASE("a host is a name or an address without blanks, brackets and slashes") {
  for (const char* const host : {"node-1", "10.0.0.1", "fd00::1", "localhost"}) {
    CAPTURE(host);
    CHECK_NOTHROW(check_host("--master-addr", host));
  }
  for (const char* const host : {"", " ", "a b", "[::1]", "http://a", "a\n"}) {
    CAPTURE(host);
    CHECK_THROWS_AS(check_host("--master-addr", host), UsageError);
  }
}

}  // namespace scaletrain::core
