// Ways to cut a tensor, and a reference that counts its elements one by one.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "lib/format/checkpoint/piece.h"

namespace scaletrain::test {

using Shape = std::vector<std::int64_t>;
using Pieces = std::vector<format::Piece>;

// The numbers of a piece's elements in the whole tensor, in the piece's order.
inline Shape elements_of(const format::Piece& piece, const Shape& shape) {
  Shape result;
  for (std::int64_t i = piece.first; i < piece.last; ++i) {
    std::int64_t left = i, number = 0, stride = 1;
    for (std::size_t d = shape.size(); d-- > 0;) {
      number += (piece.begin[d] + left % piece.size[d]) * stride;
      left /= piece.size[d];
      stride *= shape[d];
    }
    result.push_back(number);
  }
  return result;
}

inline format::Piece box(Shape begin, Shape size) {
  const std::int64_t count = format::element_count(size);
  return {.begin = std::move(begin), .size = std::move(size), .first = 0, .last = count};
}

// Each of `pieces` cut along a dimension, at `ends` of its own extent.
inline Pieces cut_at(const Pieces& pieces, std::size_t dimension, const Shape& ends) {
  Pieces result;
  for (const format::Piece& piece : pieces) {
    std::int64_t from = 0;
    for (const std::int64_t end : ends) {
      Shape begin = piece.begin, size = piece.size;
      begin[dimension] += from;
      size[dimension] = end - from;
      if (end > from) result.push_back(box(std::move(begin), std::move(size)));
      from = end;
    }
  }
  return result;
}

// In `ranks` parts as equal as can be; ranks beyond the extent have nothing.
inline Pieces cut_evenly(const Pieces& pieces, std::size_t dimension, std::int64_t ranks) {
  Pieces result;
  for (const format::Piece& piece : pieces) {
    Shape ends;
    for (std::int64_t r = 1; r <= ranks; ++r) ends.push_back(piece.size[dimension] * r / ranks);
    for (format::Piece& part : cut_at({piece}, dimension, ends)) result.push_back(std::move(part));
  }
  return result;
}

// The elements of each piece as ranges over `ranks`, as ZeRO has them.
inline Pieces cut_flat(const Pieces& pieces, std::int64_t ranks) {
  Pieces result;
  for (const format::Piece& piece : pieces) {
    for (std::int64_t r = 0; r < ranks; ++r) {
      format::Piece part = piece;
      part.first = piece.count() * r / ranks;
      part.last = piece.count() * (r + 1) / ranks;
      if (part.count() > 0) result.push_back(std::move(part));
    }
  }
  return result;
}

struct NamedCut {
  std::string name;
  Pieces pieces;
};

// Of a tensor of three dimensions of at least 6, the first one a multiple of 3.
inline std::vector<NamedCut> ten_cuts(const Shape& shape) {
  const Pieces whole{format::whole_piece(shape)};
  const Pieces thirds = cut_evenly(whole, 0, 3);
  return {
      {"whole", whole},
      {"rows", cut_evenly(whole, 0, 4)},
      {"columns", cut_evenly(whole, 2, 3)},
      {"fused parts, each in halves", cut_evenly(thirds, 0, 2)},
      {"three-dimensional", cut_evenly(cut_evenly(cut_evenly(whole, 0, 2), 1, 2), 2, 2)},
      {"uneven", cut_at(whole, 1, {1, shape[1] - 1, shape[1]})},
      {"more ranks than rows", cut_evenly(whole, 0, shape[0] + 5)},
      {"flat ranges", cut_flat(whole, 7)},
      {"flat ranges of columns", cut_flat(cut_evenly(whole, 2, 2), 5)},
      {"one by one in the middle", cut_evenly(whole, 1, shape[1])},
  };
}

}  // namespace scaletrain::test
