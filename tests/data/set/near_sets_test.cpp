#include "lib/data/set/near_sets.h"

#include <doctest/doctest.h>

#include <bit>
#include <functional>
#include <map>
#include <numeric>
#include <random>
#include <string>

using scaletrain::data::near_sets;
using scaletrain::data::NearSets;

namespace {

using Hashes = std::vector<std::uint64_t>;

// Every two hashes compared.
std::vector<std::vector<std::uint32_t>> sets_by_force(const Hashes& hashes, int distance) {
  std::vector<std::uint32_t> lowest(hashes.size());
  std::iota(lowest.begin(), lowest.end(), 0U);
  for (bool is_changed = true; is_changed;) {
    is_changed = false;
    for (std::size_t a = 0; a < hashes.size(); ++a) {
      for (std::size_t b = 0; b < hashes.size(); ++b) {
        if (std::popcount(hashes[a] ^ hashes[b]) > distance || lowest[b] >= lowest[a]) continue;
        lowest[a] = lowest[b];
        is_changed = true;
      }
    }
  }
  std::map<std::uint32_t, std::vector<std::uint32_t>> members;
  for (std::uint32_t i = 0; i < hashes.size(); ++i) members[lowest[i]].push_back(i);
  std::vector<std::vector<std::uint32_t>> sets;
  for (const auto& [first, numbers] : members) {
    if (numbers.size() > 1) sets.push_back(numbers);
  }
  return sets;
}

std::uint64_t flipped(std::uint64_t hash, int bits, std::mt19937_64& random) {
  for (int i = 0; i < bits; ++i) hash ^= std::uint64_t{1} << random() % 64;
  return hash;
}

// Hashes of several kinds; `count` is about how many.
struct Kind {
  std::string name;
  std::function<Hashes(std::size_t count, std::mt19937_64&)> make;
};

Hashes each(std::size_t count, const std::function<std::uint64_t()>& make) {
  Hashes hashes(count);
  for (std::uint64_t& hash : hashes) hash = make();
  return hashes;
}

const std::vector<Kind>& kinds() {
  static const std::vector<Kind> all{
      {"all equal", [](std::size_t n, auto&) { return Hashes(n, 0x1234); }},
      {"of any bits", [](std::size_t n, auto& r) { return each(n, [&] { return r(); }); }},
      {"copies with some bits changed",
       [](std::size_t n, auto& r) {
         const Hashes first = each(n / 8 + 1, [&] { return r(); });
         return each(
             n, [&] { return flipped(first[r() % first.size()], static_cast<int>(r() % 9), r); });
       }},
      {"in 16 bits", [](std::size_t n, auto& r) { return each(n, [&] { return r() & 0xffff; }); }},
      {"in 15 bits that stand apart",
       [](std::size_t n, auto& r) { return each(n, [&] { return r() & 0x111'1111'1111'1111; }); }},
      {"in 40 bits", [](std::size_t n, auto& r) { return each(n, [&] { return r() >> 24; }); }},
      // As photographs on white have: most bits are 0 in nine of ten.
      {"with a white border",
       [](std::size_t n, auto& r) {
         return each(n, [&] { return r() % 10 == 0 ? r() : r() & 0x0000'3c3c'3c3c'0000; });
       }},
      {"with few ones",
       [](std::size_t n, auto& r) { return each(n, [&] { return r() & r() & r() & r(); }); }}};
  return all;
}

}  // namespace

TEST_CASE("no pair is missed and none is made up, at any distance") {
  std::mt19937_64 random(5);
  for (const Kind& kind : kinds()) {
    for (int distance = 0; distance <= 7; ++distance) {
      CAPTURE(kind.name);
      CAPTURE(distance);
      const Hashes hashes = kind.make(300, random);
      CHECK(near_sets(hashes, distance).sets == sets_by_force(hashes, distance));
    }
  }
  CHECK(near_sets({}, 3).sets.empty());
  CHECK(near_sets({7}, 3).sets.empty());
}

TEST_CASE("the work grows about as the number of hashes, also where very many agree in most bits") {
  std::mt19937_64 random(6);
  constexpr std::size_t kCount = 12'500;
  for (const Kind& kind : kinds()) {
    for (const int distance : {1, 3}) {
      const auto of_one = near_sets(kind.make(kCount, random), distance).operations;
      const auto of_eight = near_sets(kind.make(8 * kCount, random), distance).operations;
      CAPTURE(kind.name);
      CAPTURE(distance);
      CAPTURE(of_one / kCount);
      CHECK(of_eight < 2 * 8 * of_one);  // the square would be 64
    }
    CHECK(near_sets(kind.make(kCount, random), 7).operations < kCount * kCount / 2 / 5);
  }
}
