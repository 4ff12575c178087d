#include "lib/core/plan/gradient_memory.h"

#include <doctest/doctest.h>

#include <string>

namespace scaletrain::core {
namespace {

constexpr std::int64_t kUnits = 10, kUnit = 800, kRanks = 4;
constexpr std::int64_t kWhole = kUnits * kUnit, kPart = kUnit / kRanks;

// A model of equal units, one block each.
std::vector<GradientBlock> equal_units() {
  std::vector<GradientBlock> blocks;
  for (std::size_t unit = 0; unit < kUnits; ++unit) {
    blocks.push_back({.first_unit = unit, .last_unit = unit, .whole = kUnit, .part = kPart});
  }
  return blocks;
}

}  // namespace

TEST_CASE("data parallel holds gradients once") {
  CHECK(bucketed_gradients(100) == GradientPeak{100, 100});
}

TEST_CASE("gradients that are averaged after backward are held twice then") {
  CHECK(late_gradients(100, false) == GradientPeak{100, 100});
  CHECK(late_gradients(100, true) == GradientPeak{100, 200});
}

TEST_CASE("sharded gradients take what the closed formulas say") {
  struct Row {
    std::string name;
    ShardedGradients options;
    std::int64_t backward;
  };
  const std::vector<Row> rows{
      // All but the last two blocks are shards already.
      {"ZeRO-1, one micro-batch", {.keeps_blocks = true}, kWhole / kRanks - kPart + 2 * kUnit},
      // All blocks, and the shard of the first one that is reduced.
      {"ZeRO-1, accumulated", {.keeps_blocks = true, .accumulates = true}, kWhole + kPart},
      {"ZeRO-2 and ZeRO-3, one micro-batch", {}, kWhole / kRanks - kPart + 2 * kUnit},
      // The shards of earlier micro-batches, and the one that is added to them.
      {"ZeRO-2 and ZeRO-3, accumulated",
       {.accumulates = true},
       kWhole / kRanks + kPart + 2 * kUnit},
      // A block and its copy in bf16; the blocks that are to come; no block is in flight.
      {"ZeRO-1, accumulated, reduced as bf16",
       {.keeps_blocks = true, .accumulates = true, .reduces_as_bf16 = true},
       kWhole + kUnit / 2},
      // In flight is a block in bf16 with its shard, while the next one is filled.
      {"ZeRO-2 and ZeRO-3, accumulated, reduced as bf16",
       {.accumulates = true, .reduces_as_bf16 = true},
       kWhole / kRanks + (kUnit + kPart) / 2 + kUnit},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    const GradientPeak peak = sharded_gradients(equal_units(), row.options);
    CHECK(peak.backward == row.backward);
    CHECK(peak.exchange == kWhole / kRanks);
  }
}

TEST_CASE("the block of a tied tensor is in memory from the last unit to the first") {
  std::vector<GradientBlock> blocks = equal_units();
  blocks.push_back({.first_unit = 0, .last_unit = kUnits - 1, .whole = 4000, .part = 1000});
  CHECK(sharded_gradients(blocks, {}).backward == kWhole / kRanks - kPart + 2 * kUnit + 4000);
}

TEST_CASE("without blocks there are no gradients") {
  CHECK(sharded_gradients({}, {}) == GradientPeak{});
}

}  // namespace scaletrain::core
