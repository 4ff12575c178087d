// Philox4x32-10, a counter-based random generator: a draw is a pure function of key and counter,
// so nothing has to be saved and no draw depends on another.
//
// Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC11, section 3.3.
#pragma once

#include <array>
#include <cstdint>

namespace scaletrain::core {

using PhiloxBlock = std::array<std::uint32_t, 4>;

// The ten rounds: block number `counter` of the stream `key`.
PhiloxBlock philox4x32(PhiloxBlock counter, std::array<std::uint32_t, 2> key);

// Purpose of the draws, so that two purposes at one place never share numbers.
enum class DrawPurpose : std::uint32_t {
  kShardOrder = 1,
  kSampleOrder = 2,
  kAugment = 3,
  kReplacement = 4,
  kDropout = 5,
  kInit = 6,
  kMix = 7,
  kRounding = 8,
  kFactors = 9,
  kSourceOrder = 16,
  kClassOrder = 17,
  kLaneOrder = 18,
  kTools = 100,  // for scaletrain-data
};

// Goes up whenever the same seed gives other numbers to a purpose: a run that is continued across
// it is not continued bit for bit. 1: initial parameters were drawn in the order of a model's
// layers, dropout in the order of a pass; 2: each parameter by its name, dropout by unit.
inline constexpr int kRandomVersion = 2;

// A sequence of draws for one (seed, purpose, epoch, position).
class Philox {
 public:
  Philox(std::uint64_t seed, DrawPurpose purpose, std::uint64_t epoch, std::uint64_t position);

  std::uint32_t next_u32();
  std::uint64_t next_u64();
  double uniform();                          // [0, 1), 53 bits
  std::uint64_t below(std::uint64_t bound);  // [0, bound), unbiased; bound >= 1

 private:
  std::array<std::uint32_t, 2> key_;
  PhiloxBlock counter_{};
  PhiloxBlock block_{};
  unsigned used_ = 4;
};

}  // namespace scaletrain::core
