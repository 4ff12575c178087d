#include "launcher/runs/fit_table.h"

#include <doctest/doctest.h>

namespace scaletrain::launcher {

TEST_CASE("columns are left out in their order until the table fits") {
  const TableCells whole{{"run", "time", "loss", ""}, {"runs/a", "35s", "0.5947", "why it failed"}};
  CHECK(table_columns(whole) == 20);  // 6 + 2 + 4 + 2 + 6
  const auto headings = [&whole](int width) {
    TableCells table = whole;
    const auto removed = fit_table(table, {"absent", "time", "loss"}, width);
    std::string text;
    for (const std::string& heading : table[0]) text += heading + " ";
    text += "without";
    for (const std::string& heading : removed) text += " " + heading;
    return text;
  };
  CHECK(headings(0) == "run time loss  without");
  CHECK(headings(20) == "run time loss  without");
  CHECK(headings(19) == "run loss  without time");
  CHECK(headings(5) == "run  without time loss");
}

}  // namespace scaletrain::launcher
