#include "lib/data/set/near_sets.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <numeric>
#include <span>
#include <utility>

namespace scaletrain::data {
namespace {

constexpr std::size_t kHashBits = 64;
constexpr std::size_t kFewHashes = 64;  // groups up to this size are compared pairwise
constexpr int kBandBits = 3;            // a part with fewer bits divides too little
constexpr std::size_t kSampled = 4096;  // hashes that are sampled to see how often a bit is set

// Disjoint sets of numbers (union-find); the lowest number of a set represents it.
class Joined {
 public:
  explicit Joined(std::size_t count) : parent_(count) {
    std::iota(parent_.begin(), parent_.end(), 0U);
  }

  void join(std::uint32_t a, std::uint32_t b) {
    const std::uint32_t first = root(a), second = root(b);
    parent_[std::max(first, second)] = std::min(first, second);
  }

  std::uint32_t root(std::uint32_t i) {
    while (parent_[i] != i) i = parent_[i] = parent_[parent_[i]];
    return i;
  }

  std::vector<std::vector<std::uint32_t>> sets() {
    // (set, member), without the first member of each set.
    std::vector<std::pair<std::uint32_t, std::uint32_t>> members;
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
  std::vector<std::uint32_t> parent_;
};

using HashNumbers = std::span<std::uint32_t>;  // indices of hashes, in any order

class NearSearch {
 public:
  NearSearch(const std::vector<std::uint64_t>& hashes, int distance)
      : hashes_(hashes), distance_(distance), joined_(hashes.size()) {}

  NearSets run() {
    std::vector<std::uint32_t> numbers(hashes_.size());
    std::iota(numbers.begin(), numbers.end(), 0U);
    group(numbers, ~std::uint64_t{0}, [&](HashNumbers equal) { join_all(equal); });
    const auto is_repeated = [&](std::uint32_t i) { return joined_.root(i) != i; };
    numbers.erase(std::remove_if(numbers.begin(), numbers.end(), is_repeated), numbers.end());
    if (distance_ > 0) search(numbers);
    return {joined_.sets(), operations_};
  }

 private:
  // Joins all near hashes among `numbers`, looking only at the bits in which they differ.
  void search(HashNumbers numbers) {
    if (numbers.size() < 2) return;
    const std::uint32_t set = joined_.root(numbers.front());
    bool is_one_set = true;
    std::uint64_t varying = 0;
    for (const std::uint32_t i : numbers) {
      is_one_set = is_one_set && joined_.root(i) == set;
      varying |= hashes_[i] ^ hashes_[numbers.front()];
    }
    operations_ += numbers.size();
    if (is_one_set) return;
    const int bits = std::popcount(varying);
    if (bits <= distance_) return join_all(numbers);
    if (numbers.size() <= kFewHashes || bits < (distance_ + 1) * kBandBits) {
      return join_pairs(numbers);
    }
    for (const std::uint64_t part : parts_of(varying, numbers)) {
      group(numbers, part, [&](HashNumbers alike) {
        // If a part hardly divides the hashes, its bits hardly vary: most hashes are near each
        // other.
        if (4 * alike.size() > 3 * numbers.size()) return join_pairs(alike);
        search(alike);
      });
    }
  }

  // Divides the bits into distance + 1 parts. Bits that vary much, and those that vary little, are
  // spread evenly over the parts.
  std::vector<std::uint64_t> parts_of(std::uint64_t bits, HashNumbers numbers) const {
    const std::size_t step = numbers.size() / std::min(numbers.size(), kSampled);
    std::array<std::size_t, kHashBits> ones{};
    std::size_t sampled = 0;
    for (std::size_t i = 0; i < numbers.size(); i += step, ++sampled) {
      for (std::size_t bit = 0; bit < kHashBits; ++bit) {
        ones.at(bit) += hashes_[numbers[i]] >> bit & 1U;
      }
    }
    // (how seldom hashes differ in the bit, bit).
    std::vector<std::pair<std::size_t, std::size_t>> order;
    order.reserve(kHashBits);
    for (std::size_t bit = 0; bit < kHashBits; ++bit) {
      if ((bits >> bit & 1U) == 0) continue;
      order.emplace_back(std::max(ones.at(bit), sampled - ones.at(bit)), bit);
    }
    std::sort(order.begin(), order.end());
    std::vector<std::uint64_t> parts(static_cast<std::size_t>(distance_) + 1);
    for (std::size_t i = 0; i < order.size(); ++i) {
      parts[i % parts.size()] |= std::uint64_t{1} << order[i].second;
    }
    return parts;
  }

  // Calls `use` for each group of at least two hashes whose bits in `mask` are equal.
  template <class Use>
  void group(HashNumbers numbers, std::uint64_t mask, const Use& use) {
    operations_ += numbers.size();
    std::sort(numbers.begin(), numbers.end(), [&](std::uint32_t a, std::uint32_t b) {
      return (hashes_[a] & mask) < (hashes_[b] & mask);
    });
    for (std::size_t begin = 0, end = 0; begin < numbers.size(); begin = end) {
      const std::uint64_t key = hashes_[numbers[begin]] & mask;
      while (end < numbers.size() && (hashes_[numbers[end]] & mask) == key) ++end;
      if (end - begin > 1) use(numbers.subspan(begin, end - begin));
    }
  }

  void join_all(HashNumbers numbers) {
    operations_ += numbers.size();
    for (const std::uint32_t i : numbers) joined_.join(numbers.front(), i);
  }

  // Compares each hash with those that are not near an earlier one, directly or through others.
  void join_pairs(HashNumbers numbers) {
    std::size_t reached = 0;
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      reached = std::max(reached, i + 1);
      operations_ += numbers.size() - reached;
      for (std::size_t k = reached; k < numbers.size(); ++k) {
        if (std::popcount(hashes_[numbers[i]] ^ hashes_[numbers[k]]) > distance_) continue;
        joined_.join(numbers[i], numbers[k]);
        std::swap(numbers[k], numbers[reached++]);
      }
    }
  }

  const std::vector<std::uint64_t>& hashes_;
  int distance_;
  Joined joined_;
  std::uint64_t operations_ = 0;
};

}  // namespace

NearSets near_sets(const std::vector<std::uint64_t>& hashes, int distance) {
  return NearSearch(hashes, distance).run();
}

}  // namespace scaletrain::data
