#include "lib/core/log.h"

#include <doctest/doctest.h>

using scaletrain::core::escape_control;

TEST_CASE("control characters are written out, so that a name cannot change the terminal") {
  CHECK(escape_control("a\x1b[31mb\n\t\x7f") == "a\\x1b[31mb\\n\\t\\x7f");
  CHECK(escape_control("gr\xc3\xbc\xc3\x9f") == "gr\xc3\xbc\xc3\x9f");
}
