// A keyed permutation of 0 .. size-1 in constant time and memory: no list is shuffled.
//
// A Feistel network over the next power of four, of at least 64 numbers, with Philox as its round
// function; results outside 0 .. size-1 are permuted again ("cycle walking", Black and Rogaway,
// Ciphers with Arbitrary Finite Domains, 2002). From a size of 16 on, at most 4 repetitions are
// expected.
#pragma once

#include <array>
#include <cstdint>

#include "lib/core/philox.h"

namespace scaletrain::data {

// Returns the key of the permutation for `purpose` number `group` of an epoch.
std::uint64_t permutation_key(std::uint64_t seed, core::DrawPurpose purpose, std::int64_t epoch,
                              std::int64_t group);

class Permutation {
 public:
  Permutation(std::uint64_t key, std::int64_t size);

  // Returns the permuted number at `index`, 0 .. size-1.
  std::int64_t operator()(std::int64_t index) const;

 private:
  std::array<std::uint32_t, 2> key_;
  std::uint64_t size_;
  unsigned half_bits_ = 3;
};

}  // namespace scaletrain::data
