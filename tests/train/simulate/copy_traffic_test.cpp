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

std::string text_of(const parallel::BucketBytes& all) {
  return fmt::format("{} of {} bytes, {} of {} bytes, {} kept", all.reduces, all.reduced,
                     all.gathers, all.gathered, all.unsent);
}

std::string reduced(int calls, int bytes, int kept = 0) {
  return fmt::format("{} of {} bytes, 0 of 0 bytes, {} kept", calls, bytes, kept);
}

std::string gathered(int calls, int bytes, int kept) {
  return fmt::format("0 of 0 bytes, {} of {} bytes, {} kept", calls, bytes, kept);
}

}  // namespace

TEST_CASE("gradients of each bucket are added up, in as many bytes as the documentation says") {
  const auto two = [](std::optional<recipe::Compress> compress) {
    return text_of(copy_traffic(compress, {kBucket, kBucket}));
  };
  const auto named = [](const char* name) { return recipe::Compress{.name = name, .rank = 2}; };
  CHECK(two({}) == reduced(2, 2 * 4 * 2058));
  CHECK(two(named("bf16")) == reduced(2, 2 * 2 * 2058));
  CHECK(two(named("fp16")) == reduced(2, 2 * 2 * 2058));
  const int kept = 2 * 2 * 4 * 2048;  // before a step and behind it what a matrix has not sent
  CHECK(two(named("int8")) == gathered(2, 2 * (8 * 260 + 40), kept));
  CHECK(two(named("onebit")) == gathered(2, 2 * (4 * 72 + 40), kept));
  CHECK(two(named("powersgd")) == reduced(4, 2 * 4 * (2 * (64 + 32) + 10), kept + 2 * 2 * 4 * 64));
}

TEST_CASE("bytes are of the gradients' type, and a bucket without any is not compressed") {
  CHECK(text_of(copy_traffic({}, {{.elements = 8, .type = at::kBFloat16}})) == reduced(1, 16));
  CHECK(text_of(copy_traffic(recipe::Compress{.name = "bf16"}, {{.elements = 8}})) ==
        reduced(0, 0));
}

}  // namespace scaletrain::train
