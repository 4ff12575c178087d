#include "lib/engine/saved_tensors.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include <cmath>
#include <memory>

namespace scaletrain::engine {
namespace {

// Keeps tensors as they are, and counts how often it packs and unpacks.
class Counting : public torch::autograd::SavedVariableHooks {
 public:
  Counting(int& packed, int& unpacked) : packed_(packed), unpacked_(unpacked) {}
  void call_pack_hook(const at::Tensor& tensor) override {
    ++packed_;
    tensor_ = tensor.detach();
  }
  at::Tensor call_unpack_hook() override {
    ++unpacked_;
    return tensor_;
  }

 private:
  int &packed_, &unpacked_;
  at::Tensor tensor_;
};

}  // namespace

TEST_CASE("in a scope saved tensors go through its hooks, the innermost scope's") {
  int outer = 0, inner = 0, unpacked = 0;
  const at::Tensor input = at::full({2}, 3.0).requires_grad_();
  at::Tensor output;
  {
    const SavedTensorsScope scope([&] { return std::make_unique<Counting>(outer, unpacked); });
    output = input.square();  // saves its input
    const SavedTensorsScope nested([&] { return std::make_unique<Counting>(inner, unpacked); });
    output = output.exp();  // its output
  }
  output = output.square();
  CHECK(outer == 1);
  CHECK(inner == 1);
  CHECK(unpacked == 0);
  output.sum().backward();
  CHECK(unpacked == 2);
  // d exp(x^2)^2 / dx = 4 x exp(2 x^2)
  CHECK(input.grad()[0].item<double>() == doctest::Approx(4 * 3 * std::exp(2 * 9.0)));
}

TEST_CASE("outside of a scope nothing is asked for hooks") {
  int packed = 0, unpacked = 0;
  {
    const SavedTensorsScope scope([&] { return std::make_unique<Counting>(packed, unpacked); });
  }
  const at::Tensor input = at::ones({2}).requires_grad_();
  input.square().sum().backward();
  CHECK(packed == 0);
}

}  // namespace scaletrain::engine
