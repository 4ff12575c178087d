// A piece of a tensor: the part that one rank holds or one file of a checkpoint stores.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace scaletrain::format {

// Elements [first, last) of a box of the tensor, in the box's own row-major order: tensor
// parallelism divides into boxes, ZeRO into ranges. A stored piece is contiguous.
struct Piece {
  std::vector<std::int64_t> begin, size;  // corner and size of the box, one number per dimension
  std::int64_t first = 0, last = 0;

  std::int64_t count() const { return last - first; }
  bool operator==(const Piece&) const = default;
};

// Returns the number of elements of a tensor or box, which must fit into 64 bits.
std::int64_t element_count(const std::vector<std::int64_t>& shape);

// Returns a piece with all elements of a tensor, or with a range of them.
Piece whole_piece(std::vector<std::int64_t> shape);
Piece range_piece(std::vector<std::int64_t> shape, std::int64_t first, std::int64_t last);

// A run of elements that two pieces share: `count` elements, from index `from` of one piece and
// index `to` of the other.
struct Overlap {
  std::int64_t from = 0, to = 0, count = 0;

  bool operator==(const Overlap&) const = default;
};

// Calls `body` for each run of elements that two pieces of one tensor share, in ascending order;
// runs that are contiguous in both are joined. The time depends only on the number of box rows
// between gaps, not on the sizes of the pieces.
void for_each_overlap(const Piece& from, const Piece& to,
                      const std::function<void(const Overlap&)>& body);
std::vector<Overlap> overlap(const Piece& from, const Piece& to);
bool overlaps(const Piece& a, const Piece& b);

}  // namespace scaletrain::format
