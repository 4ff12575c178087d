#include "lib/core/plan/allocation_replay.h"

#include <doctest/doctest.h>

namespace scaletrain::core {
namespace {

using Bytes = std::vector<std::int64_t>;

// A step that holds 1,000 bytes of kind 0 and computes in blocks of kind 1: one of 100 bytes for
// each sample, then, when that is freed, one of 300 bytes and 50 for each sample.
AllocationTrace trace_of(std::int64_t samples) {
  const std::int64_t first = 100 * samples, second = 300 + 50 * samples;
  return {.samples = samples,
          .held = {1000, 0},
          .events = {{1, first}, {1, -first}, {1, second}, {1, -second}}};
}

}  // namespace

TEST_CASE("the peak of a larger micro-batch is known from two smaller ones") {
  // The second block is the larger one up to 6 samples, the first one from there on.
  CHECK(replayed_peak(trace_of(1), trace_of(2), 4) == Bytes{1000, 500});
  CHECK(replayed_peak(trace_of(1), trace_of(2), 6) == Bytes{1000, 600});
  CHECK(replayed_peak(trace_of(1), trace_of(2), 20) == Bytes{1000, 2000});
}

TEST_CASE("one trace predicts its own micro-batch alone") {
  CHECK(replayed_peak(trace_of(3), trace_of(3), 3) == Bytes{1000, 450});
  CHECK(!replayed_peak(trace_of(3), trace_of(3), 4));
}

TEST_CASE("traces with other events predict nothing") {
  AllocationTrace longer = trace_of(2);
  longer.events.push_back({1, 8});
  CHECK(!replayed_peak(trace_of(1), longer, 4));
  AllocationTrace other = trace_of(2);
  other.events[0].kind = 0;
  CHECK(!replayed_peak(trace_of(1), other, 4));
}

TEST_CASE("memory that a step frees first is no peak") {
  const AllocationTrace trace{.samples = 1, .held = {100, 50}, .events = {{1, -50}, {0, 30}}};
  CHECK(replayed_peak(trace, trace, 1) == Bytes{100, 50});
}

}  // namespace scaletrain::core
