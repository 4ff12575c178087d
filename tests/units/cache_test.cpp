#include "lib/units/cache.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include "lib/core/error.h"

namespace scaletrain::units {
namespace {

// `count` tokens of two heads, all of them `value`.
Cache::Held tokens_of(double value, std::int64_t count) {
  return {.keys = at::full({1, 2, count, 4}, value), .values = at::full({1, 2, count, 3}, -value)};
}

}  // namespace

TEST_CASE("a cache holds each layer's keys and values of all passes, in their order") {
  Cache cache(4);
  const int first = 0, second = 0;
  CHECK(cache.extend(&first, tokens_of(1, 3)).keys.size(2) == 3);
  CHECK(at::equal(cache.extend(&second, tokens_of(5, 3)).values, tokens_of(5, 3).values));
  cache.advance(3);
  CHECK(cache.length() == 3);
  const Cache::Held held = cache.extend(&first, tokens_of(2, 1));
  CHECK(at::equal(held.keys, at::cat({tokens_of(1, 3).keys, tokens_of(2, 1).keys}, 2)));
  CHECK(at::equal(held.values, at::cat({tokens_of(1, 3).values, tokens_of(2, 1).values}, 2)));
}

TEST_CASE("a cache takes no more than it was made for") {
  Cache cache(4);
  const int layer = 0;
  cache.extend(&layer, tokens_of(1, 3));
  cache.advance(3);
  CHECK_THROWS_WITH_AS(cache.extend(&layer, tokens_of(1, 2)), "cache: 5 tokens do not fit into 4",
                       core::InternalError);
}

}  // namespace scaletrain::units
