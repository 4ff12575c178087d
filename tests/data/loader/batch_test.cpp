#include "lib/data/loader/batch.h"

#include <doctest/doctest.h>

#include <numeric>
#include <stdexcept>

using namespace scaletrain::data;  // NOLINT(google-build-using-namespace)
namespace core = scaletrain::core;

namespace {

// Rows of three bytes and two numbers: 10 r, 10 r + 1, ... in both columns.
Columns filled(std::int64_t rows, core::BufferPool& pool) {
  Columns columns({{Element::kUint8, 3}, {Element::kInt64, 2}}, rows, pool);
  for (std::int64_t row = 0; row < rows; ++row) {
    const auto bytes = columns.values<std::uint8_t>(0, row);
    std::iota(bytes.begin(), bytes.end(), static_cast<std::uint8_t>(10 * row));
    const auto numbers = columns.values<std::int64_t>(1, row);
    std::iota(numbers.begin(), numbers.end(), 10 * row);
  }
  return columns;
}

}  // namespace

TEST_CASE("each column is contiguous and aligned, its rows in order") {
  const auto pool = core::make_host_pool();
  const Columns columns = filled(5, *pool);
  const auto bytes = columns.values<std::uint8_t>(0);
  const auto numbers = columns.values<std::int64_t>(1);
  CHECK(bytes.size() == 15);
  CHECK(numbers.size() == 10);
  CHECK(reinterpret_cast<std::uintptr_t>(bytes.data()) % 64 == 0);
  CHECK(reinterpret_cast<std::uintptr_t>(numbers.data()) % 64 == 0);
  for (std::size_t row = 0; row < 5; ++row) {
    CHECK(bytes[3 * row + 2] == 10 * row + 2);
    CHECK(numbers[2 * row + 1] == static_cast<std::int64_t>(10 * row + 1));
  }
}

TEST_CASE("rows that are removed leave the others together, in every column") {
  const auto pool = core::make_host_pool();
  Columns columns = filled(6, *pool);
  columns.remove(std::vector<std::int64_t>{0, 3, 4});
  CHECK(columns.rows() == 3);
  const auto numbers = columns.values<std::int64_t>(1);
  CHECK(std::vector(numbers.begin(), numbers.end()) ==
        std::vector<std::int64_t>{10, 11, 20, 21, 50, 51});
  const auto bytes = columns.values<std::uint8_t>(0);
  CHECK(std::vector<int>(bytes.begin(), bytes.end()) ==
        std::vector<int>{10, 11, 12, 20, 21, 22, 50, 51, 52});
  columns.remove(std::vector<std::int64_t>{0, 1, 2});
  CHECK(columns.rows() == 0);
  CHECK(columns.values<std::uint8_t>(0).empty());
}

TEST_CASE("a column is not handed out as another type") {
  const auto pool = core::make_host_pool();
  const Columns columns = filled(2, *pool);
  CHECK_THROWS_AS(columns.values<std::int64_t>(0), std::logic_error);
  CHECK_THROWS_AS(columns.values<std::uint8_t>(1), std::logic_error);
}
