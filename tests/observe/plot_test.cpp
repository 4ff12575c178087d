#include "lib/observe/plot.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

namespace scaletrain::observe {

TEST_CASE("a sparkline has the lowest block for the lowest value and the highest for the highest") {
  CHECK(sparkline({0, 1, 2, 3, 4, 5, 6, 7}, 8) == "▁▂▃▄▅▆▇█");
  CHECK(sparkline({7, 0}, 8) == "█▁");
  CHECK(sparkline({5, 5, 5}, 8) == "▁▁▁");
}

TEST_CASE("a sparkline leaves out what is not finite") {
  CHECK(sparkline({0, std::nan(""), 1, std::numeric_limits<double>::infinity()}, 8) == "▁█");
  CHECK(sparkline({std::nan("")}, 8).empty());
  CHECK(sparkline({}, 8).empty());
}

TEST_CASE("a sparkline of more values than columns has means of neighbours") {
  CHECK(sparkline({0, 0, 7, 7}, 2) == "▁█");
  CHECK(text_columns(sparkline(std::vector<double>(10000, 1.0), 30)) == 30);
}

TEST_CASE("downsampling takes means of runs of neighbours and keeps few points as they are") {
  const std::vector<PlotPoint> few{{1, 10}, {2, 20}};
  CHECK(downsample(few, 2).size() == 2);
  const std::vector<PlotPoint> less = downsample({{1, 10}, {2, 20}, {3, 30}, {4, 50}}, 2);
  REQUIRE(less.size() == 2);
  CHECK(less[0].x == 1.5);
  CHECK(less[0].y == 15);
  CHECK(less[1].y == 40);
}

TEST_CASE("a chart has its rows, an axis row, and exactly the width that was asked for") {
  const std::vector<std::string> rows = draw_chart({{1, 0.5}, {100, 2.5}}, 40, 5);
  REQUIRE(rows.size() == 6);
  for (const std::string& row : rows) CHECK(text_columns(row) == 40);
  CHECK(rows.front().starts_with("2.5 |"));
  CHECK(rows[1].starts_with("    |"));
  CHECK(rows[4].starts_with("0.5 |"));
  CHECK(rows[5].starts_with("     1"));
  CHECK(rows[5].ends_with("100"));
}

TEST_CASE("the y axis has the texts that the caller gives its values") {
  const auto percent = [](double value) { return std::to_string(std::lround(100 * value)) + " %"; };
  const auto rows = draw_chart({{1, 0.5}, {2, 1}}, 40, 3, Scale::kLinear, percent);
  REQUIRE(rows.size() == 4);
  CHECK(rows[0].starts_with("100 % |"));
  CHECK(rows[2].starts_with(" 50 % |"));
}

TEST_CASE("the name of the x axis stands between its ends if there is room") {
  const auto last_row = [](int width) {
    return draw_chart({{1, 0.5}, {100, 1}}, width, 3, Scale::kLinear, nullptr, "step").back();
  };
  CHECK(last_row(24) == "     1     step      100");
  CHECK(last_row(16) == "     1       100");
}

TEST_CASE("a chart draws rising values from the lower left to the upper right") {
  // Two columns of labels and a bar leave 13 columns: the first dot is the lowest of the last row.
  const std::vector<std::string> rows = draw_chart({{0, 0}, {1, 1}}, 16, 2);
  REQUIRE(rows.size() == 3);
  CHECK(rows[0].ends_with("⠉"));       // the upper two dots
  CHECK(rows[1].starts_with("0 |⣀"));  // the lower two dots
}

TEST_CASE("a logarithmic x axis gives each decade the same width") {
  const std::vector<PlotPoint> decades{{0.001, 0}, {0.01, 1}, {0.1, 2}};
  const std::vector<std::string> rows = draw_chart(decades, 40, 5, Scale::kLogarithmic);
  const std::vector<std::string> same = draw_chart({{-3, 0}, {-2, 1}, {-1, 2}}, 40, 5);
  REQUIRE(rows.size() == 6);
  for (std::size_t i = 0; i < 5; ++i) CHECK(rows[i] == same[i]);
  CHECK(rows[5].starts_with("   0.001 "));
  CHECK(rows[5].ends_with(" 0.1"));
}

TEST_CASE("a logarithmic x axis leaves out points at 0 and below") {
  const std::vector<PlotPoint> points{{-1, 9}, {0, 9}, {0.1, 1}, {10, 2}};
  CHECK(draw_chart(points, 40, 5, Scale::kLogarithmic) ==
        draw_chart({{0.1, 1}, {10, 2}}, 40, 5, Scale::kLogarithmic));
  CHECK(draw_chart({{0, 1}}, 40, 5, Scale::kLogarithmic).empty());
}

TEST_CASE("a chart of one point and of equal values is drawn") {
  CHECK(draw_chart({{1, 2}}, 20, 3).size() == 4);
  CHECK(draw_chart({{1, 2}, {2, 2}}, 20, 3).size() == 4);
}

TEST_CASE("means of equal values are equal: a constant curve is flat") {
  CHECK(sparkline(std::vector<double>(100, 0.1), 7) == "▁▁▁▁▁▁▁");
}

TEST_CASE("a chart without finite points or without room is empty") {
  CHECK(draw_chart({}, 40, 5).empty());
  CHECK(draw_chart({{1, std::nan("")}}, 40, 5).empty());
  CHECK(draw_chart({{1, 1}}, 15, 5).empty());
  CHECK(draw_chart({{1, 1}}, 40, 1).empty());
}

TEST_CASE("a text is cut or padded to columns, not bytes") {
  CHECK(text_columns("a▁b") == 3);
  CHECK(fit_columns("a▁b", 2) == "a▁");
  CHECK(fit_columns("a▁", 4) == "a▁  ");
}

}  // namespace scaletrain::observe
