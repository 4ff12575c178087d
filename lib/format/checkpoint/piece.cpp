#include "lib/format/checkpoint/piece.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace scaletrain::format {
namespace {

// Intersection of two boxes, as rows of elements that are contiguous in both.
class SharedRows {
 public:
  SharedRows(const Piece& from, const Piece& to) : from_(from), to_(to) {
    const std::size_t dimensions = from.begin.size();
    begin_.resize(dimensions);
    size_.resize(dimensions);
    for (std::size_t d = 0; d < dimensions; ++d) {
      begin_[d] = std::max(from.begin[d], to.begin[d]);
      const std::int64_t end = std::min(from.begin[d] + from.size[d], to.begin[d] + to.size[d]);
      size_[d] = std::max<std::int64_t>(0, end - begin_[d]);
    }
    // Inner dimensions in which the boxes agree are merged into one row.
    outer_ = dimensions;
    while (outer_ > 0) {
      row_ *= size_[--outer_];
      if (from.begin[outer_] != to.begin[outer_] || from.size[outer_] != to.size[outer_]) break;
    }
    for (std::size_t d = 0; d < outer_; ++d) rows_ *= size_[d];
    if (row_ == 0) rows_ = 0;
  }

  std::int64_t rows() const { return rows_; }

  // Returns row `row` in the coordinates of both pieces; rows outside a piece are negative or past
  // its end.
  Overlap run(std::int64_t row) const {
    Overlap result{.from = -from_.first, .to = -to_.first, .count = row_};
    std::int64_t from_stride = 1, to_stride = 1;
    for (std::size_t d = begin_.size(); d-- > 0;) {
      std::int64_t at = begin_[d];
      if (d < outer_) at += std::exchange(row, row / size_[d]) % size_[d];
      result.from += (at - from_.begin[d]) * from_stride;
      result.to += (at - to_.begin[d]) * to_stride;
      from_stride *= from_.size[d];
      to_stride *= to_.size[d];
    }
    return result;
  }

 private:
  const Piece& from_;
  const Piece& to_;
  std::vector<std::int64_t> begin_, size_;
  std::size_t outer_ = 0;            // dimensions that count rows
  std::int64_t row_ = 1, rows_ = 1;  // elements of a row, and how many rows there are
};

// The elements of `run` that both pieces have.
Overlap clip(Overlap run, const Piece& from, const Piece& to) {
  const std::int64_t skipped = std::max({std::int64_t{0}, -run.from, -run.to});
  run.from += skipped;
  run.to += skipped;
  run.count = std::min({run.count - skipped, from.count() - run.from, to.count() - run.to});
  return run;
}

// Returns the first row that ends after the beginning of both pieces; rows ascend in both.
std::int64_t first_row(const SharedRows& shared) {
  std::int64_t row = 0;
  for (std::int64_t behind = shared.rows(); row < behind;) {
    const std::int64_t middle = row + (behind - row) / 2;
    const Overlap run = shared.run(middle);
    if (run.from + run.count <= 0 || run.to + run.count <= 0) {
      row = middle + 1;
    } else {
      behind = middle;
    }
  }
  return row;
}

}  // namespace

std::int64_t element_count(const std::vector<std::int64_t>& shape) {
  std::int64_t count = 1;
  for (const std::int64_t dimension : shape) count *= dimension;
  return count;
}

Piece whole_piece(std::vector<std::int64_t> shape) {
  const std::int64_t count = element_count(shape);
  return range_piece(std::move(shape), 0, count);
}

Piece range_piece(std::vector<std::int64_t> shape, std::int64_t first, std::int64_t last) {
  std::vector<std::int64_t> begin(shape.size(), 0);
  return {.begin = std::move(begin), .size = std::move(shape), .first = first, .last = last};
}

void for_each_overlap(const Piece& from, const Piece& to,
                      const std::function<void(const Overlap&)>& body) {
  const SharedRows shared(from, to);
  Overlap open;
  for (std::int64_t row = first_row(shared); row < shared.rows(); ++row) {
    const Overlap run = clip(shared.run(row), from, to);
    if (run.count <= 0) break;
    if (open.from + open.count == run.from && open.to + open.count == run.to) {
      open.count += run.count;
      continue;
    }
    if (open.count > 0) body(open);
    open = run;
  }
  if (open.count > 0) body(open);
}

std::vector<Overlap> overlap(const Piece& from, const Piece& to) {
  std::vector<Overlap> runs;
  for_each_overlap(from, to, [&](const Overlap& run) { runs.push_back(run); });
  return runs;
}

bool overlaps(const Piece& a, const Piece& b) {
  const SharedRows shared(a, b);
  const std::int64_t row = first_row(shared);
  return row < shared.rows() && clip(shared.run(row), a, b).count > 0;
}

}  // namespace scaletrain::format
