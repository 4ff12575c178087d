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

TEST_CASE("a text that a spreadsheet would compute is a text, and numbers stay numbers") {
  for (const char* const text :
       {"=1+1", "+1+1", "-1+1", "@SUM(A1)", "=HYPERLINK(\"x\")", "\t=1", "\n=1", "\uff1d1+1"}) {
    CAPTURE(text);
    const std::string cell = csv_cell(text);
    CHECK((cell.starts_with("'") || cell.starts_with("\"'")));
  }
  for (const char* const text : {"-0.5", "+1", "-1e-05", "-inf", "-nan", "-", "=", "a=1",
                                 "'t Hooft", "1-2", "a@b", "", "'", "'1"}) {
    CAPTURE(text);
    CHECK(csv_cell(text) == text);
  }
  CHECK(csv_cell("=1,2") == "\"'=1,2\"");
}

TEST_CASE("a cell that is read again is the text that was written") {
  for (const char* const text :
       {"=1+1", "'=1+1", "''=1+1", "-x", "-0.5", "'-0.5", "'t Hooft", "'", "", "=", "cat"}) {
    CAPTURE(text);
    CHECK(without_apostrophe(csv_cell(text)) == text);
  }
}

TEST_CASE("a cell changes no terminal, and is UTF-8") {
  CHECK(csv_cell("a\x1b[2J") == "a\\x1b[2J");
  CHECK(csv_cell("a\xff") == "a\\xff");
  CHECK(csv_cell("caf\u00e9") == "caf\u00e9");
}

}  // namespace scaletrain::core
