#include "lib/observe/trace/intervals.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <string>

namespace scaletrain::observe {
namespace {

std::string intervals_text(const TimeIntervals& intervals) {
  std::string text;
  for (const TimeInterval& one : intervals) text += fmt::format("[{} {}]", one.begin, one.end);
  return text;
}

TEST_CASE("merged intervals are in order, without overlap and without empty ones") {
  CHECK(intervals_text(merged({{5, 9}, {0, 2}, {8, 12}, {3, 3}, {2, 4}})) == "[0 4][5 12]");
  CHECK(intervals_text(merged({{0, 10}, {2, 3}})) == "[0 10]");
  CHECK(merged({}).empty());
  CHECK(total_length(merged({{5, 9}, {0, 2}, {8, 12}})) == 9);  // 2 + 7
}

TEST_CASE("the shared length of two unions is that of their intersection") {
  const TimeIntervals a{{0, 10}, {20, 30}}, b{{5, 22}, {25, 26}, {29, 40}};
  CHECK(shared_length(a, b) == 9);  // 5..10, 20..22, 25..26, 29..30
  CHECK(shared_length(b, a) == 9);
  CHECK(shared_length(a, {}) == 0);
  CHECK(shared_length(a, {{10, 20}}) == 0);
}

}  // namespace
}  // namespace scaletrain::observe
