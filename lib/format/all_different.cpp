// One hash table of all numbers would miss the caches at each access and be rebuilt whenever it
// grows. Numbers are therefore first sorted into groups by their upper bits, in one pass over
// memory, and each group needs only a small table.
#include "lib/format/all_different.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <numeric>

#include "lib/core/parallel.h"

namespace scaletrain::format {
namespace {

constexpr std::size_t kGroup = 1024;  // numbers, about: twice as many places are 16 kB

// `table` is a power of two of places, more than there are numbers.
bool group_is_different(std::span<const std::uint64_t> group, std::span<std::uint64_t> table) {
  std::fill(table.begin(), table.end(), 0);
  bool has_zero = false;  // zero marks an empty slot of `table`
  for (const std::uint64_t number : group) {
    if (number == 0) {
      if (has_zero) return false;
      has_zero = true;
      continue;
    }
    std::size_t at = number & (table.size() - 1);
    for (; table[at] != 0; at = (at + 1) & (table.size() - 1)) {
      if (table[at] == number) return false;
    }
    table[at] = number;
  }
  return true;
}

// Checks the groups from `first` to `end`; the upper `bits` bits of a number select its group.
bool groups_are_different(std::span<const std::vector<std::uint64_t>> parts, int bits,
                          std::size_t first, std::size_t end) {
  const auto for_each = [&](const auto& use) {
    for (const auto& part : parts) {
      for (const std::uint64_t number : part) {
        const std::size_t group = number >> (64 - bits);
        if (group >= first && group < end) use(number, group - first);
      }
    }
  };
  std::vector<std::size_t> places(end - first);  // first the sizes of groups, then where each ends
  for_each([&](std::uint64_t, std::size_t group) { ++places[group]; });
  const std::size_t largest = *std::max_element(places.begin(), places.end());
  const std::size_t count = std::reduce(places.begin(), places.end());
  std::exclusive_scan(places.begin(), places.end(), places.begin(), std::size_t{0});
  std::vector<std::uint64_t> sorted(count);
  for_each([&](std::uint64_t number, std::size_t group) { sorted[places[group]++] = number; });

  std::vector<std::uint64_t> table(std::bit_ceil(2 * largest + 1));
  std::size_t begin = 0;
  for (const std::size_t place : places) {
    if (!group_is_different(std::span(sorted).subspan(begin, place - begin), table)) return false;
    begin = place;
  }
  return true;
}

}  // namespace

bool all_different(std::span<const std::vector<std::uint64_t>> parts, int threads) {
  std::size_t count = 0;
  for (const auto& part : parts) count += part.size();
  const int bits = std::max(1, static_cast<int>(std::bit_width(count / kGroup)));
  const std::size_t groups = std::size_t{1} << bits;
  const std::size_t shares = std::clamp<std::size_t>(static_cast<std::size_t>(threads), 1, groups);
  std::atomic<bool> is_different = true;
  core::for_each_index(static_cast<std::int64_t>(shares), threads, [&](std::int64_t number) {
    const auto share = static_cast<std::size_t>(number);
    if (!groups_are_different(parts, bits, groups * share / shares,
                              groups * (share + 1) / shares)) {
      is_different = false;
    }
  });
  return is_different;
}

}  // namespace scaletrain::format
