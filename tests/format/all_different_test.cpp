#include "lib/format/all_different.h"

#include <doctest/doctest.h>

#include <string>

#include "lib/core/text/hash.h"

using namespace scaletrain::format;  // NOLINT(google-build-using-namespace)

namespace {

using Parts = std::vector<std::vector<std::uint64_t>>;

// The hashes of 0 to count - 1 in two parts.
Parts hashes(int count) {
  Parts parts(2);
  for (int i = 0; i < count; ++i) {
    parts[i < count / 3 ? 0 : 1].push_back(scaletrain::core::xxh3_64(std::to_string(i)));
  }
  return parts;
}

}  // namespace

TEST_CASE("numbers are different until one occurs twice, in one part or in two") {
  CHECK(all_different(Parts{}, 2));
  CHECK(all_different(Parts{{}, {7}}, 1));
  CHECK(!all_different(Parts{{7, 7}}, 4));
  CHECK(!all_different(Parts{{7}, {8, 7}}, 1));
  for (const int count : {10, 3000, 100'000}) {  // two groups, a few, many
    for (const int threads : {1, 2, 5}) {
      Parts parts = hashes(count);
      CHECK(all_different(parts, threads));
      parts[0].push_back(parts[1].back());
      CHECK(!all_different(parts, threads));
      parts[0].back() = parts[0].front();
      CHECK(!all_different(parts, threads));
    }
  }
}

TEST_CASE("numbers with few distinct bits are distinguished too") {
  CHECK(all_different(Parts{{0}, {1}}, 2));
  CHECK(!all_different(Parts{{0}, {0}}, 2));
  CHECK(all_different(Parts{{0, ~std::uint64_t{0}}}, 2));
  Parts parts(1);  // all in one group, and after each other in its table
  for (std::uint64_t i = 0; i < 5000; ++i) parts[0].push_back(i << 20);
  CHECK(all_different(parts, 2));
  parts[0].push_back(std::uint64_t{4999} << 20);
  CHECK(!all_different(parts, 2));
}
