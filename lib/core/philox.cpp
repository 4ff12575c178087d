#include "lib/core/philox.h"

namespace scaletrain::core {
namespace {

// Multipliers and Weyl constants of Philox4x32, SC11 paper, table 2 and section 3.3.
constexpr std::uint32_t kMultiplier0 = 0xD2511F53;
constexpr std::uint32_t kMultiplier1 = 0xCD9E8D57;
constexpr std::uint32_t kWeyl0 = 0x9E3779B9;
constexpr std::uint32_t kWeyl1 = 0xBB67AE85;
constexpr int kRounds = 10;

}  // namespace

PhiloxBlock philox4x32(PhiloxBlock counter, std::array<std::uint32_t, 2> key) {
  for (int round = 0; round < kRounds; ++round) {
    const std::uint64_t product0 = std::uint64_t{kMultiplier0} * counter[0];
    const std::uint64_t product1 = std::uint64_t{kMultiplier1} * counter[2];
    counter = {static_cast<std::uint32_t>(product1 >> 32) ^ counter[1] ^ key[0],
               static_cast<std::uint32_t>(product1),
               static_cast<std::uint32_t>(product0 >> 32) ^ counter[3] ^ key[1],
               static_cast<std::uint32_t>(product0)};
    key[0] += kWeyl0;
    key[1] += kWeyl1;
  }
  return counter;
}

Philox::Philox(std::uint64_t seed, DrawPurpose purpose, std::uint64_t epoch, std::uint64_t position)
    : key_{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)} {
  // The counter's words: draw number, purpose and epoch, position. An epoch's upper bits share a
  // word with the purpose; 2^24 epochs are enough.
  counter_ = {0, (static_cast<std::uint32_t>(purpose) << 24) ^ static_cast<std::uint32_t>(epoch),
              static_cast<std::uint32_t>(position), static_cast<std::uint32_t>(position >> 32)};
}

std::uint32_t Philox::next_u32() {
  if (used_ == block_.size()) {
    block_ = philox4x32(counter_, key_);
    ++counter_[0];
    used_ = 0;
  }
  return block_.at(used_++);
}

std::uint64_t Philox::next_u64() {
  const std::uint64_t low = next_u32();
  return (std::uint64_t{next_u32()} << 32) | low;
}

double Philox::uniform() { return static_cast<double>(next_u64() >> 11) * 0x1.0p-53; }

std::uint64_t Philox::below(std::uint64_t bound) {
  // Draws above the largest multiple of `bound` are thrown away, so that no value is favoured.
  const std::uint64_t limit = UINT64_MAX - UINT64_MAX % bound;
  std::uint64_t draw = next_u64();
  while (draw >= limit) draw = next_u64();
  return draw % bound;
}

}  // namespace scaletrain::core
