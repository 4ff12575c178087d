#include "lib/core/text/shell_word.h"

#include <doctest/doctest.h>

using scaletrain::core::shell_word;

TEST_CASE("plain words stay as they are, others are quoted") {
  CHECK(shell_word("runs/a-b_c.1") == "runs/a-b_c.1");
  CHECK(shell_word("") == "''");
  CHECK(shell_word("a b") == "'a b'");
  CHECK(shell_word("$(reboot)") == "'$(reboot)'");
  CHECK(shell_word("~") == "'~'");
  CHECK(shell_word("it's") == "'it'\\''s'");
}
