#include "lib/input/documents.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>

namespace scaletrain::input {
namespace {

constexpr int kEnd = 9;

}  // namespace

TEST_CASE("a token sees its own document up to itself, whose end belongs to it") {
  const at::Tensor tokens = at::tensor({1, kEnd, 2, 3, kEnd, kEnd, 4}, at::kLong).view({1, 7});
  const units::Context context = apart(tokens, kEnd);
  const at::Tensor expected = at::tensor({1, 0, 0, 0, 0, 0, 0,  // 1
                                          1, 1, 0, 0, 0, 0, 0,  // its end
                                          0, 0, 1, 0, 0, 0, 0,  // 2
                                          0, 0, 1, 1, 0, 0, 0,  // 3
                                          0, 0, 1, 1, 1, 0, 0,  // its end
                                          0, 0, 0, 0, 0, 1, 0,  // a document of nothing but its end
                                          0, 0, 0, 0, 0, 0, 1});  // 4
  CHECK((context.sees.scalar_type() == at::kBool));
  CHECK(at::equal(context.sees, expected.view({1, 1, 7, 7}).to(at::kBool)));
  CHECK(at::equal(context.positions, at::tensor({0, 1, 0, 1, 2, 0, 0}, at::kLong).view({1, 7})));
}

TEST_CASE("rows of a batch have documents of their own") {
  const at::Tensor tokens = at::tensor({kEnd, 1, 2, 1, 2, 3}, at::kLong).view({2, 3});
  const units::Context context = apart(tokens, kEnd);
  CHECK(at::equal(context.positions, at::tensor({0, 0, 1, 0, 1, 2}, at::kLong).view({2, 3})));
  CHECK(at::equal(context.sees[1][0], at::ones({3, 3}, at::kBool).tril()));
  CHECK_FALSE(context.sees[0][0][1][0].item<bool>());
}

}  // namespace scaletrain::input
