#include "lib/core/philox.h"

#include <doctest/doctest.h>

#include <array>
#include <cstdlib>
#include <set>

using scaletrain::core::DrawPurpose;
using scaletrain::core::Philox;
using scaletrain::core::philox4x32;
using scaletrain::core::PhiloxBlock;

// The known answers published with Random123 (kat_vectors, philox4x32 with 10 rounds).
TEST_CASE("philox4x32 gives Random123's known answers") {
  CHECK(philox4x32({0, 0, 0, 0}, {0, 0}) ==
        PhiloxBlock{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  CHECK(philox4x32({~0U, ~0U, ~0U, ~0U}, {~0U, ~0U}) ==
        PhiloxBlock{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  CHECK(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}) ==
        PhiloxBlock{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST_CASE("streams of another seed, purpose, epoch or position differ") {
  const auto first = [](std::uint64_t seed, DrawPurpose purpose, std::uint64_t epoch,
                        std::uint64_t position) {
    return Philox(seed, purpose, epoch, position).next_u64();
  };
  const std::set<std::uint64_t> draws{
      first(1, DrawPurpose::kAugment, 0, 0),         first(2, DrawPurpose::kAugment, 0, 0),
      first(1, DrawPurpose::kDropout, 0, 0),         first(1, DrawPurpose::kAugment, 1, 0),
      first(1, DrawPurpose::kAugment, 0, 1),         first(1ULL << 32, DrawPurpose::kAugment, 0, 0),
      first(1, DrawPurpose::kAugment, 0, 1ULL << 32)};
  CHECK(draws.size() == 7);
}

TEST_CASE("the same stream gives the same draws") {
  Philox a(7, DrawPurpose::kAugment, 3, 11);
  Philox b(7, DrawPurpose::kAugment, 3, 11);
  for (int draw = 0; draw < 20; ++draw) CHECK(a.next_u32() == b.next_u32());
}

TEST_CASE("below covers its range evenly and stays in it") {
  Philox random(7, DrawPurpose::kAugment, 0, 0);
  std::array<int, 6> counts{};
  for (int draw = 0; draw < 60000; ++draw) ++counts.at(random.below(counts.size()));
  // 10,000 expected each, standard deviation 91; five of them.
  for (const int count : counts) CHECK(std::abs(count - 10000) < 455);
  CHECK(random.below(1) == 0);
}

TEST_CASE("uniform is in [0, 1) with mean one half") {
  Philox random(7, DrawPurpose::kAugment, 0, 1);
  double sum = 0;
  for (int draw = 0; draw < 10000; ++draw) {
    const double value = random.uniform();
    REQUIRE(value >= 0);
    REQUIRE(value < 1);
    sum += value;
  }
  CHECK(sum / 10000 == doctest::Approx(0.5).epsilon(0.03));  // standard error 0.0029
}
