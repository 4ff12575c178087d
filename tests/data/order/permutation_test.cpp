#include "lib/data/order/permutation.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

using scaletrain::data::Permutation;

TEST_CASE("every size gives a permutation") {
  for (std::int64_t size = 1; size < 300; ++size) {
    CAPTURE(size);
    const Permutation order(size * 77, size);
    std::set<std::int64_t> seen;
    for (std::int64_t i = 0; i < size; ++i) seen.insert(order(i));
    CHECK(static_cast<std::int64_t>(seen.size()) == size);
    CHECK(*seen.begin() == 0);
    CHECK(*seen.rbegin() == size - 1);
  }
}

TEST_CASE("large sizes are permuted without memory, and without a repetition") {
  for (const std::int64_t size : {1'000'003, 1 << 20, (1 << 20) + 1}) {
    const Permutation order(5, size);
    std::vector<bool> seen(static_cast<std::size_t>(size));
    for (std::int64_t i = 0; i < size; ++i) seen[static_cast<std::size_t>(order(i))] = true;
    CHECK(std::count(seen.begin(), seen.end(), true) == size);
  }
  const Permutation enormous(5, std::int64_t{1} << 60);
  CHECK(enormous(0) != enormous(1));
}

TEST_CASE("each number stands at each place about equally often over the keys") {
  for (const std::int64_t size : {2, 4, 5, 10, 64, 100}) {
    CAPTURE(size);
    const auto n = static_cast<std::size_t>(size);
    const int keys = 200 * static_cast<int>(size);
    std::vector<int> counts(n * n);
    for (int key = 0; key < keys; ++key) {
      const Permutation order(static_cast<std::uint64_t>(key), size);
      for (std::size_t i = 0; i < n; ++i) {
        ++counts[i * n + static_cast<std::size_t>(order(static_cast<std::int64_t>(i)))];
      }
    }
    double chi_square = 0;  // 200 are expected of each
    for (const int count : counts) chi_square += (count - 200.0) * (count - 200.0) / 200.0;
    const double freedom = static_cast<double>((n - 1) * (n - 1));
    CHECK(chi_square < freedom + 4 * std::sqrt(2 * freedom) + 4);
    CHECK(chi_square > freedom - 4 * std::sqrt(2 * freedom) - 4);
  }
}

TEST_CASE("neighbours are followed by any other number about equally often") {
  constexpr std::int64_t kSize = 50;
  std::vector<int> differences(kSize);
  for (std::uint64_t key = 0; key < 1000; ++key) {
    const Permutation order(key, kSize);
    for (std::int64_t i = 0; i + 1 < kSize; ++i) {
      ++differences[static_cast<std::size_t>((order(i + 1) - order(i) + kSize) % kSize)];
    }
  }
  CHECK(differences[0] == 0);
  // 49,000 pairs over 49 differences: 1,000 each, standard deviation 31.
  for (std::size_t d = 1; d < differences.size(); ++d) CHECK(std::abs(differences[d] - 1000) < 160);
}
