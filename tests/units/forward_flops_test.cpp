#include "lib/units/forward_flops.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include <functional>

namespace scaletrain::units {
namespace {

Flops flops_of(const std::function<void()>& run) {
  const ForwardFlops counter;
  run();
  return counter.count();
}

}  // namespace

TEST_CASE("matrix products and convolutions count two operations a multiplication") {
  const at::Tensor a = at::ones({3, 5}), b = at::ones({5, 7}), batch = at::ones({2, 3, 5});
  CHECK(flops_of([&] { a.mm(b); }).products == 2 * 3 * 5 * 7);
  CHECK(flops_of([&] { at::linear(a, b.t(), at::ones({7})); }).products == 2 * 3 * 5 * 7);
  CHECK(flops_of([&] { batch.bmm(at::ones({2, 5, 7})); }).products == 2 * 2 * 3 * 5 * 7);
  const at::Tensor image = at::ones({2, 4, 9, 9});
  // 3 x 3 kernels with a stride of 2: 5 x 5 places of an output with 6 channels.
  CHECK(flops_of([&] {
          at::conv2d(image, at::ones({6, 4, 3, 3}), {}, /*stride=*/2, /*padding=*/1);
        }).products == 2 * 2 * 6 * 4 * 9 * 25);
  // In two groups each output channel reads half of the input channels.
  CHECK(flops_of([&] {
          at::conv2d(image, at::ones({6, 2, 3, 3}), {}, 1, 1, 1, /*groups=*/2);
        }).products == 2 * 2 * 6 * 2 * 9 * 81);
}

TEST_CASE("fused attention counts scores and their product with the values") {
  const at::Tensor q = at::ones({2, 3, 8, 16}), k = at::ones({2, 3, 8, 16});
  const Flops flops = flops_of([&] { at::scaled_dot_product_attention(q, k, k); });
  CHECK(flops.forward() == 2.0 * 2 * 3 * 8 * 8 * (16 + 16));
  CHECK((flops.attention == 0 || flops.backward() == 2.5 * flops.forward()));
}

TEST_CASE("kernels that ATen does not dispatch announce their FLOPs") {
  announce_flops({.products = 1000});  // nobody counts
  const Flops flops = flops_of([] {
    announce_flops({.products = 7});
    announce_flops({.attention = 4});
  });
  CHECK(flops.products == 7);
  CHECK(flops.attention == 4);
}

TEST_CASE("what is element-wise, or runs when nothing counts, is not counted") {
  const at::Tensor a = at::ones({8, 8});
  a.mm(a);
  CHECK(flops_of([&] { (a + a).exp().softmax(1).sum(); }).forward() == 0);
  CHECK(Flops{.products = 10, .attention = 4}.backward() == 20 + 10);
}

}  // namespace scaletrain::units
