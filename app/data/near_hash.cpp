#include "app/data/near_hash.h"

#include <algorithm>
#include <bit>
#include <numeric>

namespace scaletrain::app {
namespace {

constexpr std::int64_t kColumns = 9, kRows = 8;
constexpr int kHashBits = 64;

// ITU-R BT.601, in thousandths.
int luma(const std::uint8_t* rgb) { return 299 * rgb[0] + 587 * rgb[1] + 114 * rgb[2]; }

}  // namespace

std::uint64_t difference_hash(const data::Image& image, data::Resizer& resizer,
                              data::Image& small) {
  resizer.resize(image, data::stretched(image.width, image.height, kColumns, kRows), small);
  std::uint64_t hash = 0;
  for (std::int64_t y = 0; y < kRows; ++y) {
    const std::uint8_t* const row = small.row(y);
    for (std::int64_t x = 0; x + 1 < kColumns; ++x) {
      hash = hash << 1 | (luma(row + 3 * x) < luma(row + 3 * (x + 1)) ? 1U : 0U);
    }
  }
  return hash;
}

std::vector<std::pair<std::size_t, std::size_t>> near_pairs(
    const std::vector<std::uint64_t>& hashes, int distance) {
  std::vector<std::pair<std::size_t, std::size_t>> pairs;
  const int bands = distance + 1;
  std::vector<std::pair<std::uint64_t, std::size_t>> keyed(hashes.size());
  for (int band = 0; band < bands; ++band) {
    const int first = kHashBits * band / bands, end = kHashBits * (band + 1) / bands;
    const std::uint64_t mask =
        (end - first == kHashBits ? 0 : std::uint64_t{1} << (end - first)) - 1;
    for (std::size_t i = 0; i < hashes.size(); ++i) keyed[i] = {hashes[i] >> first & mask, i};
    std::sort(keyed.begin(), keyed.end());
    for (std::size_t i = 0; i < keyed.size(); ++i) {
      for (std::size_t k = i + 1; k < keyed.size() && keyed[k].first == keyed[i].first; ++k) {
        const std::size_t a = keyed[i].second, b = keyed[k].second;
        if (std::popcount(hashes[a] ^ hashes[b]) <= distance) pairs.emplace_back(a, b);
      }
    }
  }
  std::sort(pairs.begin(), pairs.end());
  pairs.erase(std::unique(pairs.begin(), pairs.end()), pairs.end());
  return pairs;
}

std::vector<std::vector<std::size_t>> joined_sets(
    std::size_t count, const std::vector<std::pair<std::size_t, std::size_t>>& pairs) {
  std::vector<std::size_t> parent(count);
  std::iota(parent.begin(), parent.end(), std::size_t{0});
  const auto root = [&](std::size_t i) {
    while (parent[i] != i) i = parent[i] = parent[parent[i]];
    return i;
  };
  // The lowest number of a set is its root, so sets come in the order of their first numbers.
  for (const auto& [a, b] : pairs) {
    const std::size_t first = root(a), second = root(b);
    parent[std::max(first, second)] = std::min(first, second);
  }
  std::vector<std::vector<std::size_t>> by_root(count), sets;
  for (std::size_t i = 0; i < count; ++i) by_root[root(i)].push_back(i);
  for (auto& set : by_root) {
    if (set.size() > 1) sets.push_back(std::move(set));
  }
  return sets;
}

}  // namespace scaletrain::app
