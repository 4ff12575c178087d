#include "lib/data/order/permutation.h"

namespace scaletrain::data {
namespace {

// Four rounds suffice for a large domain (Luby and Rackoff, 1988); small domains need more.
constexpr std::uint32_t kRounds = 8;

}  // namespace

std::uint64_t permutation_key(std::uint64_t seed, core::DrawPurpose purpose, std::int64_t epoch,
                              std::int64_t group) {
  return core::Philox(seed, purpose, static_cast<std::uint64_t>(epoch),
                      static_cast<std::uint64_t>(group))
      .next_u64();
}

Permutation::Permutation(std::uint64_t key, std::int64_t size)
    : key_{static_cast<std::uint32_t>(key), static_cast<std::uint32_t>(key >> 32)},
      size_(static_cast<std::uint64_t>(size)) {
  while ((std::uint64_t{1} << (2 * half_bits_)) < size_) ++half_bits_;
}

std::int64_t Permutation::operator()(std::int64_t index) const {
  const auto mask = static_cast<std::uint32_t>((std::uint64_t{1} << half_bits_) - 1);
  auto value = static_cast<std::uint64_t>(index);
  do {
    auto left = static_cast<std::uint32_t>(value >> half_bits_);
    auto right = static_cast<std::uint32_t>(value) & mask;
    for (std::uint32_t round = 0; round < kRounds; ++round) {
      const std::uint32_t mixed = core::philox4x32({right, round, 0, 0}, key_)[0] & mask;
      const std::uint32_t next = left ^ mixed;
      left = right;
      right = next;
    }
    value = std::uint64_t{left} << half_bits_ | right;
  } while (value >= size_);
  return static_cast<std::int64_t>(value);
}

}  // namespace scaletrain::data
