#include "lib/data/loader/batch.h"

#include <cstring>
#include <stdexcept>
#include <type_traits>
#include <utility>

namespace scaletrain::data {
namespace {

constexpr std::size_t kAlignment = 64;

std::size_t bytes_of(const Column& column) {
  const std::size_t element = column.element == Element::kInt64 ? sizeof(std::int64_t) : 1;
  return element * static_cast<std::size_t>(column.size);
}

}  // namespace

Columns::Columns(std::vector<Column> layout, std::int64_t rows, core::BufferPool& pool)
    : layout_(std::move(layout)), rows_(rows) {
  std::size_t end = 0;
  offsets_.reserve(layout_.size());
  for (const Column& column : layout_) {
    offsets_.push_back((end + kAlignment - 1) / kAlignment * kAlignment);
    end = offsets_.back() + static_cast<std::size_t>(rows) * bytes_of(column);
  }
  storage_ = pool.take(end);
}

template <class T>
std::span<T> Columns::values(std::size_t column) const {
  const Element asked = std::is_same_v<T, std::int64_t> ? Element::kInt64 : Element::kUint8;
  if (layout_.at(column).element != asked) {
    throw std::logic_error("a column of samples was asked for as another type");
  }
  return {reinterpret_cast<T*>(storage_.bytes().data() + offsets_[column]),
          static_cast<std::size_t>(rows_ * layout_[column].size)};
}

template std::span<std::uint8_t> Columns::values<std::uint8_t>(std::size_t column) const;
template std::span<std::int64_t> Columns::values<std::int64_t>(std::size_t column) const;

void Columns::remove(std::span<const std::int64_t> absent) {
  if (absent.empty()) return;
  for (std::size_t column = 0; column < layout_.size(); ++column) {
    const std::size_t bytes = bytes_of(layout_[column]);
    std::byte* const begin = storage_.bytes().data() + offsets_[column];
    auto gap = absent.begin();
    std::size_t to = 0;
    for (std::int64_t from = 0; from < rows_; ++from) {
      if (gap != absent.end() && *gap == from) {
        ++gap;
        continue;
      }
      std::memmove(begin + to * bytes, begin + static_cast<std::size_t>(from) * bytes, bytes);
      ++to;
    }
  }
  rows_ -= static_cast<std::int64_t>(absent.size());
}

}  // namespace scaletrain::data
