#include "lib/optim/sam.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include "tests/count_reads.h"

// tests/parity/regularisation_test.py compares whole steps with the papers' formulas.
namespace {

using namespace scaletrain;

at::Tensor leaf(const std::vector<double>& values, const std::vector<double>& gradient) {
  const at::Tensor tensor = at::tensor(values, at::kFloat).requires_grad_(true);
  tensor.mutable_grad() = at::tensor(gradient, at::kFloat);
  return tensor;
}

TEST_CASE("the weights move by rho along the gradients, and come back bit for bit") {
  const at::Tensor a = leaf({1, 2}, {3, 0}), b = leaf({0.1}, {4});
  const at::Tensor before = b.detach().clone();
  optim::Sam sam({.rho = 0.5}, {{.name = "a", .tensor = a}, {.name = "b", .tensor = b}});
  sam.weigh();
  CHECK(a.grad()[0].item<double>() == 3);
  sam.ascend(at::full({}, 5.0, at::kDouble));          // of 3, 0, 4
  CHECK(a[0].item<double>() == doctest::Approx(1.3));  // 1 + 0.5 * 3 / 5
  CHECK(a[1].item<double>() == 2);
  CHECK(b[0].item<double>() == doctest::Approx(0.5));  // 0.1 + 0.5 * 4 / 5
  sam.descend();
  CHECK(a[0].item<double>() == 1);
  CHECK(at::equal(b.detach(), before));
}

TEST_CASE("adaptive: each weight moves in proportion to its size") {
  const at::Tensor a = leaf({-2, 0.5}, {3, 16});
  optim::Sam sam({.rho = 1, .adaptive = true}, {{.name = "a", .tensor = a}});
  sam.weigh();
  CHECK(at::equal(a.grad(), at::tensor({6.0F, 8.0F})));
  sam.ascend(at::full({}, 10.0, at::kDouble));
  CHECK(a[0].item<double>() == doctest::Approx(-0.8));  // -2 + 2 * 6 / 10
  CHECK(a[1].item<double>() == doctest::Approx(0.9));   // 0.5 + 0.5 * 8 / 10
}

TEST_CASE("the weights come back to where they were before the last ascent") {
  const at::Tensor a = leaf({1, 2}, {3, 4});
  optim::Sam sam({.rho = 0.5}, {{.name = "a", .tensor = a}});
  a.detach().fill_(7);  // by the optimizer
  sam.ascend(at::full({}, 5.0, at::kDouble));
  sam.descend();
  CHECK(at::equal(a.detach(), at::full({2}, 7.0)));
}

TEST_CASE("without parameters nothing moves") {
  optim::Sam sam({.rho = 0.5}, {});
  CHECK_NOTHROW(sam.ascend(at::zeros({}, at::kDouble)));
}

TEST_CASE("it only queues work, and what is not finite comes back too") {
  const at::Tensor a = leaf({1, 2}, {HUGE_VAL, 1});
  optim::Sam sam({.rho = 1}, {{.name = "a", .tensor = a}});
  CHECK(testing::count_reads([&] {
          sam.weigh();
          sam.ascend(at::full({}, HUGE_VAL, at::kDouble));
          sam.descend();
        }) == 0);
  CHECK(at::equal(a.detach(), at::tensor({1.0F, 2.0F})));
}

}  // namespace
