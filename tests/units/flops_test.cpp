#include "lib/units/flops.h"

#include <doctest/doctest.h>

namespace scaletrain::units {

TEST_CASE("attention has two products forward and five backward, without masked pairs") {
  AttentionSize size{.heads = 3, .queries = 4, .keys = 4, .head_dim = 2, .value_dim = 2};
  CHECK(size.forward().counted() == 2 * 2 * 3 * 16 * 2);
  CHECK(size.backward().counted() == 5 * 2 * 3 * 16 * 2);
  size.causal = true;  // 1 + 2 + 3 + 4 pairs
  CHECK(size.forward().counted() == 2 * 2 * 3 * 10 * 2);
  CHECK(size.backward().counted() == 5 * 2 * 3 * 10 * 2);
  CHECK(size.forward().forward() == 2 * 2 * 3 * 16 * 2);  // as if it were not causal
  size.keys = 3;  // the last query sees all keys: 1 + 2 + 3 + 3 pairs
  CHECK(size.forward().counted() == 2 * 2 * 3 * 9 * 2);
  size.queries = 2;  // 1 + 2 pairs
  CHECK(size.forward().counted() == 2 * 2 * 3 * 3 * 2);
}

TEST_CASE("the value size counts in the products with values") {
  const AttentionSize size{.heads = 1, .queries = 1, .keys = 1, .head_dim = 2, .value_dim = 5};
  CHECK(size.forward().counted() == 2 * (2 + 5));
  CHECK(size.backward().counted() == 2 * (3 * 2 + 2 * 5));
}

TEST_CASE(
    "backward of trained layers is two products for one, and of fused attention five for two") {
  CHECK(Flops{.products = 10, .attention = 4}.backward() == 20 + 10);
}

}  // namespace scaletrain::units
