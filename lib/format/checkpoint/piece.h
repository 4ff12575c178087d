// A piece of a tensor: what one rank holds of it, or one file of a checkpoint.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace scaletrain::format {

// Elements [first, last) of a box of the tensor, counted in the box's own row-major order: tensor
// parallelism cuts boxes, ZeRO cuts ranges. They lie one behind the other where the piece is kept.
struct Piece {
  std::vector<std::int64_t> begin, size;  // corner and size of the box, one number per dimension
  std::int64_t first = 0, last = 0;

  std::int64_t count() const { return last - first; }
  bool operator==(const Piece&) const = default;
};

// Elements of a tensor or box; the caller knows that they fit into 64 bits.
std::int64_t element_count(const std::vector<std::int64_t>& shape);

// All of a tensor, and a range of its elements.
Piece whole_piece(std::vector<std::int64_t> shape);
Piece range_piece(std::vector<std::int64_t> shape, std::int64_t first, std::int64_t last);

// Elements that two pieces share: `count` of them, from number `from` of the one and number `to` of
// the other on, counted from where each piece begins.
struct Overlap {
  std::int64_t from = 0, to = 0, count = 0;

  bool operator==(const Overlap&) const = default;
};

// Calls `body` with what two pieces of one tensor share, in ascending order; runs that meet on both
// sides are one. Costs as many turns as there are rows of the boxes between which elements lie that
// are not shared, whatever else the pieces hold.
void for_each_overlap(const Piece& from, const Piece& to,
                      const std::function<void(const Overlap&)>& body);
std::vector<Overlap> overlap(const Piece& from, const Piece& to);
bool overlaps(const Piece& a, const Piece& b);

}  // namespace scaletrain::format
