#include "lib/units/operation_flops.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include <functional>

#include "lib/units/flop_counter.h"

namespace scaletrain::units {
namespace {

PassFlops both_passes(const std::function<void()>& run) {
  const FlopCounter counter(FlopCounter::Threads::kThis);
  run();
  return counter.count();
}

Flops forward_flops(const std::function<void()>& run) { return both_passes(run).forward; }

at::Tensor parameter(at::IntArrayRef sizes) { return at::ones(sizes).requires_grad_(); }

}  // namespace

TEST_CASE("matrix products and convolutions count two operations a multiplication") {
  const at::Tensor a = at::ones({3, 5}), b = at::ones({5, 7}), batch = at::ones({2, 3, 5});
  CHECK(forward_flops([&] { a.mm(b); }).products == 2 * 3 * 5 * 7);
  CHECK(forward_flops([&] { at::linear(a, b.t(), at::ones({7})); }).products == 2 * 3 * 5 * 7);
  CHECK(forward_flops([&] { batch.bmm(at::ones({2, 5, 7})); }).products == 2 * 2 * 3 * 5 * 7);
  const at::Tensor image = at::ones({2, 4, 9, 9});
  // 3 x 3 kernels with a stride of 2: 5 x 5 places of an output with 6 channels.
  CHECK(forward_flops([&] {
          at::conv2d(image, at::ones({6, 4, 3, 3}), {}, /*stride=*/2, /*padding=*/1);
        }).products == 2 * 2 * 6 * 4 * 9 * 25);
  // In two groups each output channel reads half of the input channels.
  CHECK(forward_flops([&] {
          at::conv2d(image, at::ones({6, 2, 3, 3}), {}, 1, 1, 1, /*groups=*/2);
        }).products == 2 * 2 * 6 * 2 * 9 * 81);
}

TEST_CASE("backward counts a product for each gradient that is needed") {
  const at::Tensor input = at::ones({3, 5}), weight = parameter({5, 7});
  const double one = 2 * 3 * 5 * 7;
  PassFlops flops = both_passes([&] { input.mm(weight).sum().backward(); });
  CHECK(flops.forward.counted() == one);
  CHECK(flops.backward.counted() == one);  // the input is data
  flops = both_passes([&] { parameter({3, 5}).mm(weight).sum().backward(); });
  CHECK(flops.backward.counted() == 2 * one);

  const at::Tensor image = at::ones({2, 4, 9, 9}), kernel = parameter({6, 2, 3, 3});
  const double convolution = 2 * 2 * 6 * 2 * 9 * 81;
  flops = both_passes([&] { at::conv2d(image, kernel, {}, 1, 1, 1, 2).sum().backward(); });
  CHECK(flops.forward.counted() == convolution);
  CHECK(flops.backward.counted() == convolution);
  flops = both_passes([&] {
    at::conv_transpose2d(parameter({2, 4, 3, 3}), parameter({4, 5, 2, 2}), {}, 2).sum().backward();
  });
  CHECK(flops.forward.counted() == 2 * 2 * 4 * 5 * 4 * 9);  // each input meets the whole kernel
  CHECK(flops.backward.counted() == 2 * flops.forward.counted());
}

TEST_CASE("fused attention counts two products forward and five backward") {
  const at::Tensor q = parameter({2, 3, 8, 16}), k = parameter({2, 3, 8, 16});
  const PassFlops flops =
      both_passes([&] { at::scaled_dot_product_attention(q, k, k).sum().backward(); });
  const double product = 2.0 * 2 * 3 * 8 * 8 * 16;
  CHECK(flops.forward.counted() == 2 * product);
  CHECK(flops.backward.counted() == 5 * product);
  CHECK(flops.forward.attention == 2 * product);  // one operation, not its parts
}

TEST_CASE("causal attention leaves out masked pairs") {
  const at::Tensor q = parameter({2, 3, 8, 16});
  const PassFlops flops = both_passes([&] {
    at::scaled_dot_product_attention(q, q, q, {}, 0, /*is_causal=*/true).sum().backward();
  });
  const double product = 2.0 * 2 * 3 * 36 * 16;  // 1 + ... + 8 pairs
  CHECK(flops.forward.counted() == 2 * product);
  CHECK(flops.backward.counted() == 5 * product);
  CHECK(flops.forward.forward() == 2 * 2.0 * 2 * 3 * 64 * 16);  // as if it were not causal
}

}  // namespace scaletrain::units
