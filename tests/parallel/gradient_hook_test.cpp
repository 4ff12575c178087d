#include "lib/parallel/gradient_hook.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>
#include <torch/csrc/autograd/autograd.h>

using namespace scaletrain;  // NOLINT(google-build-using-namespace)

TEST_CASE("a parameter's gradient is there when its hook is called, once in each backward") {
  at::Tensor parameter = at::ones({2}).requires_grad_(true);
  int calls = 0;
  at::Tensor seen;
  parallel::on_gradient(parameter, [&](const at::Tensor& arrived) {
    ++calls;
    seen = arrived.grad().clone();
    at::Tensor same = arrived;
    same.mutable_grad().reset();
  });
  for (int pass = 1; pass <= 2; ++pass) {
    torch::autograd::backward({(parameter * parameter * 3).sum()}, {});  // 6 p, of two uses
    CHECK(calls == pass);
    CHECK(at::equal(seen, at::full({2}, 6.0)));
    CHECK_FALSE(parameter.grad().defined());
  }
}
