#include "lib/core/disk/stream_copy.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

using scaletrain::core::stream_copy;

TEST_CASE("a copy past the caches has all bytes and writes no others, wherever it begins") {
  constexpr std::size_t kMost = 400, kAround = 64;
  std::vector<std::byte> source(kMost + kAround);
  for (std::size_t i = 0; i < source.size(); ++i) source[i] = static_cast<std::byte>(i * 7 + 1);
  for (std::size_t bytes = 0; bytes <= kMost; ++bytes) {
    for (const std::size_t from : {0U, 1U, 16U, 33U}) {
      for (const std::size_t to : {0U, 5U, 48U, 63U}) {
        std::vector<std::byte> target(kMost + 2 * kAround, std::byte{0});
        stream_copy({source.data() + from, bytes}, target.data() + to);
        std::vector<std::byte> expected(target.size(), std::byte{0});
        std::copy_n(source.data() + from, bytes, expected.data() + to);
        if (target != expected) FAIL(bytes << " bytes from " << from << " to " << to);
      }
    }
  }
}
