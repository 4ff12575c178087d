#include "lib/units/flop_counter.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include <functional>
#include <thread>

namespace scaletrain::units {
namespace {

using Threads = FlopCounter::Threads;

PassFlops passes_of(const std::function<void()>& run, Threads threads = Threads::kThis) {
  const FlopCounter counter(threads);
  run();
  return counter.count();
}

Flops flops_of(const std::function<void()>& run) { return passes_of(run).forward; }

}  // namespace

TEST_CASE("kernels that ATen does not dispatch announce their FLOPs") {
  announce_flops({.products = 1000});  // nobody counts
  const PassFlops flops = passes_of([] {
    announce_flops({.products = 7});
    announce_flops({.attention = 4});
    const FlopPassScope again(FlopPass::kRecomputed);
    announce_flops({.products = 3});
    const FlopPassScope apart(FlopPass::kNone);
    announce_flops({.products = 5});
  });
  CHECK(flops.forward.products == 7);
  CHECK(flops.forward.attention == 4);
  CHECK(flops.recomputed.counted() == 3);
}

TEST_CASE("operations of autograd's nodes are backward, and parts of an operation do not count") {
  const at::Tensor weight = at::ones({5, 7}).requires_grad_();
  const PassFlops flops = passes_of([&] {
    at::linear(at::ones({3, 5}), weight.t()).sum().backward();
  });
  CHECK(flops.forward.counted() == 2 * 3 * 5 * 7);
  CHECK(flops.backward.counted() == 2 * 3 * 5 * 7);
  CHECK(flops.recomputed.counted() == 0);
}

TEST_CASE("a counter of all threads counts other threads, and one of this thread does not") {
  const auto elsewhere = [] { std::thread([] { at::ones({2, 2}).mm(at::ones({2, 2})); }).join(); };
  CHECK(passes_of(elsewhere, Threads::kAll).forward.counted() == 2 * 8);
  CHECK(passes_of(elsewhere, Threads::kThis).forward.counted() == 0);
}

TEST_CASE("what is element-wise, or runs when nothing counts, is not counted") {
  const at::Tensor a = at::ones({8, 8});
  a.mm(a);
  CHECK(flops_of([&] { (a + a).exp().softmax(1).sum(); }).counted() == 0);
}

}  // namespace scaletrain::units
