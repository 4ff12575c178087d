#include "app/data/near_hash.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <utility>

namespace scaletrain::app {
namespace {

constexpr std::int64_t kColumns = 9, kRows = 8;
constexpr int kHashBits = 64;

// ITU-R BT.601, in thousandths.
int luma(const std::uint8_t* rgb) { return 299 * rgb[0] + 587 * rgb[1] + 114 * rgb[2]; }

// Which numbers belong together; the lowest of a set stands for it.
class Joined {
 public:
  explicit Joined(std::size_t count) : parent_(count) {
    std::iota(parent_.begin(), parent_.end(), 0U);
  }

  void join(std::uint32_t a, std::uint32_t b) {
    const std::uint32_t first = root(a), second = root(b);
    parent_[std::max(first, second)] = std::min(first, second);
  }

  std::vector<std::vector<std::uint32_t>> sets() {
    std::vector<std::pair<std::uint32_t, std::uint32_t>> members;  // but the first of each set
    for (std::uint32_t i = 0; i < parent_.size(); ++i) {
      if (root(i) != i) members.emplace_back(root(i), i);
    }
    std::sort(members.begin(), members.end());
    std::vector<std::vector<std::uint32_t>> sets;
    for (const auto& [first, member] : members) {
      if (sets.empty() || sets.back().front() != first) sets.push_back({first});
      sets.back().push_back(member);
    }
    return sets;
  }

 private:
  std::uint32_t root(std::uint32_t i) {
    while (parent_[i] != i) i = parent_[i] = parent_[parent_[i]];
    return i;
  }

  std::vector<std::uint32_t> parent_;
};

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

std::vector<std::vector<std::uint32_t>> near_sets(const std::vector<std::uint64_t>& hashes,
                                                  int distance) {
  Joined joined(hashes.size());
  std::vector<std::uint32_t> order(hashes.size());
  std::iota(order.begin(), order.end(), 0U);
  const int bands = distance + 1;
  for (int band = 0; band < bands; ++band) {
    const int first = kHashBits * band / bands, end = kHashBits * (band + 1) / bands;
    const std::uint64_t mask =
        (end - first == kHashBits ? 0 : std::uint64_t{1} << (end - first)) - 1;
    const auto key = [&](std::uint32_t i) { return hashes[i] >> first & mask; };
    std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
      return std::pair(key(a), hashes[a]) < std::pair(key(b), hashes[b]);
    });
    for (std::size_t i = 0; i < order.size(); ++i) {
      std::uint64_t compared = hashes[order[i]];
      // Of equal hashes the last is compared with what follows: blank pictures are many.
      if (i + 1 < order.size() && hashes[order[i + 1]] == compared) {
        joined.join(order[i], order[i + 1]);
        continue;
      }
      for (std::size_t k = i + 1; k < order.size() && key(order[k]) == key(order[i]); ++k) {
        if (hashes[order[k]] == compared) continue;  // as the one before
        compared = hashes[order[k]];
        if (std::popcount(hashes[order[i]] ^ compared) <= distance) {
          joined.join(order[i], order[k]);
        }
      }
    }
  }
  return joined.sets();
}

}  // namespace scaletrain::app
