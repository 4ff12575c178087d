#include "lib/core/text/table.h"

#include <doctest/doctest.h>

namespace scaletrain::core {

TEST_CASE("columns are as wide as their widest cell, and lines end without blanks") {
  CHECK(text_table({{"a", "count"}, {"longer", "1"}}) == "a       count\nlonger  1\n");
  CHECK(text_table({}).empty());
}

TEST_CASE("a cell of CSV is quoted where it has to be") {
  CHECK(csv_line({"a", "b c", ""}) == "a,b c,\r\n");
  CHECK(csv_line({"a,b", R"(say "x")", "two\nlines"}) ==
        "\"a,b\",\"say \"\"x\"\"\",\"two\nlines\"\r\n");
}

}  // namespace scaletrain::core
