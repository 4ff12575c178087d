#include "lib/format/csv.h"

#include <doctest/doctest.h>

#include "tests/format/tar/tar_support.h"

namespace scaletrain::format {
namespace {

// "LINE:field|field " of each row.
std::string rows_of(const std::string& text, char separator = ',') {
  const std::string place = "a.csv";
  CsvReader reader(text, place, separator);
  std::string rows;
  while (const auto row = reader.next()) {
    rows += std::to_string(row->line) + ":";
    for (const std::string& field : row->fields) rows += field + "|";
    rows += " ";
  }
  return rows;
}

}  // namespace

TEST_CASE("fields of a row may stand in quotes and run over lines") {
  CHECK(rows_of("a,b\r\n\n1,\"x, \"\"y\"\"\nz\"\n2,3") == "1:a|b| 3:1|x, \"y\"\nz| 5:2|3| ");
  CHECK(rows_of("a\tb,c\n1\t2\n", '\t') == "1:a|b,c| 2:1|2| ");
  CHECK(message_of([] { rows_of("a\n\"b"); }) == "a.csv:2: a quote that does not end\n  close it");
}

TEST_CASE("a row of another length than the first is refused with its line") {
  CHECK(message_of([] {
          check_width({{"1"}, 7}, {{"a", "b"}, 1}, "a.csv");
        }) ==
        "a.csv:7: 1 columns where the first line has 2\n"
        "  put a field that holds a comma in quotes");
}

}  // namespace scaletrain::format
