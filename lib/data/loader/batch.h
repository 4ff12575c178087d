// A batch of a stream, stored in columns: one column for each part of a sample.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "lib/core/buffer.h"
#include "lib/data/loader/bad_sample.h"

namespace scaletrain::data {

enum class Element { kUint8, kInt64 };

// Layout of one part of a sample: number and type of its elements.
struct Column {
  Element element = Element::kUint8;
  std::int64_t size = 0;  // elements of a sample
};

// Memory of `rows` samples: column after column, each aligned to 64 bytes, so that a column is one
// tensor [rows, size].
class Columns {
 public:
  Columns() = default;
  // Allocates one block of `pool`.
  Columns(std::vector<Column> layout, std::int64_t rows, core::BufferPool& pool);

  std::int64_t rows() const { return rows_; }
  const std::vector<Column>& layout() const { return layout_; }

  // Returns a column of all rows; T is std::uint8_t or std::int64_t. Throws std::logic_error if the
  // column has another type.
  template <class T>
  std::span<T> values(std::size_t column) const;
  // Returns the column's elements of row `row`.
  template <class T>
  std::span<T> values(std::size_t column, std::int64_t row) const {
    const auto size = static_cast<std::size_t>(layout_[column].size);
    return values<T>(column).subspan(static_cast<std::size_t>(row) * size, size);
  }

  // Returns the whole block of memory.
  std::span<const std::byte> block() const { return storage_.bytes(); }

  // Removes the rows in `absent` (ascending) and closes the gaps.
  void remove(std::span<const std::int64_t> absent);

 private:
  std::vector<Column> layout_;
  std::vector<std::size_t> offsets_;  // in bytes
  std::int64_t rows_ = 0;
  core::Buffer storage_;  // returns to its pool when this is destroyed
};

// Seconds that loader threads spent in each stage, summed over samples.
struct StageTimes {
  double read_s = 0, decode_s = 0, augment_s = 0;

  StageTimes& operator+=(const StageTimes& other) {
    read_s += other.read_s;
    decode_s += other.decode_s;
    augment_s += other.augment_s;
    return *this;
  }
};

struct Batch {
  Columns columns;
  std::int64_t count = 0;    // samples
  std::int64_t targets = 0;  // terms of the loss; one per label
  std::int64_t epoch = 0;
  std::int64_t position = 0;       // position of the first sample in the epoch
  std::uint64_t digest = 0;        // sum mod 2^64 of sample_digest() of the batch's samples
  StageTimes stages;               // summed over its samples
  std::vector<BadSample> skipped;  // unreadable samples that were replaced or left out
};

}  // namespace scaletrain::data
