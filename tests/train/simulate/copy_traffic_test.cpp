#include "lib/train/simulate/copy_traffic.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <string>

namespace scaletrain::train {
namespace {

// A matrix of 64 x 32 and a vector of 10.
const CopyBucket kBucket{.elements = 2058,
                         .slots = {{.name = "weight", .begin = 0, .elements = 2048, .rows = 64},
                                   {.name = "bias", .begin = 2048, .elements = 10, .rows = 0}}};

std::string text_of(const CopyTraffic& traffic) {
  std::string text;
  for (const CopyTraffic::Calls& one : traffic.calls) {
    const char* const kind = one.kind == dist::FakeKind::kAllReduce ? "reduced" : "gathered";
    text += fmt::format("{} {} times, {} bytes; ", kind, one.calls, one.bytes);
  }
  return text + fmt::format("{} kept", traffic.unsent_bytes);
}

}  // namespace

TEST_CASE("gradients of each bucket are added up, in as many bytes as docs/parallelism.md says") {
  const auto two = [](std::optional<recipe::Compress> compress) {
    return text_of(copy_traffic(compress, {kBucket, kBucket}, 4));
  };
  const auto named = [](const char* name) { return recipe::Compress{.name = name, .rank = 2}; };
  CHECK(two({}) == fmt::format("reduced 2 times, {} bytes; 0 kept", 2 * 4 * 2058));
  CHECK(two(named("bf16")) == fmt::format("reduced 2 times, {} bytes; 0 kept", 2 * 2 * 2058));
  CHECK(two(named("fp16")) == two(named("bf16")));
  // Before a step and behind it there is what a matrix has not sent.
  const int kept = 2 * 2 * 4 * 2048;
  CHECK(two(named("int8")) ==
        fmt::format("gathered 2 times, {} bytes; {} kept", 2 * 4 * (8 * 260 + 40), kept));
  CHECK(two(named("onebit")) ==
        fmt::format("gathered 2 times, {} bytes; {} kept", 2 * 4 * (4 * 72 + 40), kept));
  CHECK(two(named("powersgd")) == fmt::format("reduced 4 times, {} bytes; {} kept",
                                              2 * 4 * (2 * (64 + 32) + 10), kept + 2 * 2 * 4 * 64));
}

TEST_CASE("bytes are of the gradients' type, and a bucket without any is not compressed") {
  CHECK(text_of(copy_traffic({}, {{.elements = 8, .type = at::kBFloat16}}, 2)) ==
        "reduced 1 times, 16 bytes; 0 kept");
  CHECK(text_of(copy_traffic(recipe::Compress{.name = "bf16"}, {{.elements = 8}}, 2)) == "0 kept");
}

}  // namespace scaletrain::train
