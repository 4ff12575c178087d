#include "lib/format/checkpoint/piece.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>

#include "tests/format/checkpoint/piece_support.h"

using namespace scaletrain;          // NOLINT(google-build-using-namespace)
using namespace scaletrain::format;  // NOLINT(google-build-using-namespace)
using test::Pieces;
using test::Shape;

namespace {

using Held = std::vector<std::vector<std::int64_t>>;  // what each piece holds

Held held_by(const Pieces& pieces, const Shape& shape) {
  Held result;
  for (const Piece& piece : pieces) result.push_back(test::elements_of(piece, shape));
  return result;
}

// What each of `to` holds when it takes its elements from `held`, the contents of `from`.
Held moved(const Pieces& from, const Held& held, const Pieces& to) {
  Held result;
  for (const Piece& wanted : to) {
    std::vector<std::int64_t>& filled = result.emplace_back();
    filled.assign(static_cast<std::size_t>(wanted.count()), -1);
    for (std::size_t i = 0; i < from.size(); ++i) {
      for (const Overlap& run : overlap(from[i], wanted)) {
        std::copy_n(held[i].begin() + run.from, run.count, filled.begin() + run.to);
      }
    }
  }
  return result;
}

// What two pieces share, element by element.
std::vector<Overlap> counted(const Piece& from, const Piece& to, const Shape& shape) {
  const Shape a = test::elements_of(from, shape), b = test::elements_of(to, shape);
  std::vector<Overlap> runs;
  for (std::int64_t i = 0; i < std::ssize(a); ++i) {
    const auto found = std::find(b.begin(), b.end(), a[static_cast<std::size_t>(i)]);
    if (found == b.end()) continue;
    const std::int64_t j = found - b.begin();
    if (!runs.empty() && runs.back().from + runs.back().count == i &&
        runs.back().to + runs.back().count == j) {
      ++runs.back().count;
    } else {
      runs.push_back({.from = i, .to = j, .count = 1});
    }
  }
  return runs;
}

}  // namespace

TEST_CASE("ten ways to cut: from each to each and back, every element is in its place") {
  const Shape shape{12, 7, 6};
  const std::vector<test::NamedCut> cuts = test::ten_cuts(shape);
  CHECK(cuts.size() == 10);
  for (const test::NamedCut& from : cuts) {
    const Held held = held_by(from.pieces, shape);
    for (const test::NamedCut& to : cuts) {
      CAPTURE(from.name);
      CAPTURE(to.name);
      const Held there = moved(from.pieces, held, to.pieces);
      CHECK(there == held_by(to.pieces, shape));
      CHECK(moved(to.pieces, there, from.pieces) == held);
    }
  }
}

TEST_CASE("what two pieces share is what counting their elements says, in runs that do not meet") {
  std::mt19937 draws(7);
  const auto draw = [&](std::int64_t least, std::int64_t most) {
    return std::uniform_int_distribution<std::int64_t>(least, most)(draws);
  };
  for (int i = 0; i < 3000; ++i) {
    Shape shape;
    for (std::int64_t d = draw(0, 4); d > 0; --d) shape.push_back(draw(1, 5));
    const auto any_piece = [&] {
      Piece piece;
      for (const std::int64_t extent : shape) {
        piece.begin.push_back(draw(0, extent - 1));
        piece.size.push_back(draw(1, extent - piece.begin.back()));
      }
      piece.first = draw(0, element_count(piece.size) - 1);
      piece.last = draw(piece.first + 1, element_count(piece.size));
      return piece;
    };
    const Piece from = any_piece(), to = any_piece();
    const std::vector<Overlap> runs = counted(from, to, shape);
    CHECK(overlap(from, to) == runs);
    CHECK(overlaps(from, to) == !runs.empty());
  }
}

TEST_CASE("rows that both pieces have whole are one run, whatever their number") {
  const std::int64_t rows = std::int64_t{1} << 40;
  const Piece upper = test::box({0, 0, 0}, {rows, 4096, 128});
  const Piece all = whole_piece({2 * rows, 4096, 128});
  const std::int64_t count = rows * 4096 * 128;
  CHECK(overlap(upper, all) == std::vector<Overlap>{{.from = 0, .to = 0, .count = count}});
  // A range of many rows is found without a look at those in front of it.
  const Piece left = test::box({0, 0}, {rows, 1});
  const Piece range = range_piece({rows, 2}, 2 * rows - 3, 2 * rows);
  CHECK(overlap(left, range) == std::vector<Overlap>{{.from = rows - 1, .to = 1, .count = 1}});
}

TEST_CASE("a tensor without dimensions has one element, one without elements none") {
  const std::vector<Overlap> one{{.from = 0, .to = 0, .count = 1}};
  CHECK(overlap(whole_piece({}), whole_piece({})) == one);
  CHECK(overlap(whole_piece({0, 3}), whole_piece({0, 3})).empty());
  CHECK(!overlaps(whole_piece({0, 3}), whole_piece({0, 3})));
}
