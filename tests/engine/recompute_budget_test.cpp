#include "lib/engine/recompute_budget.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace scaletrain::engine {
namespace {

std::string as_digits(const std::vector<bool>& again) {
  std::string text;
  for (const bool one : again) text += one ? '1' : '0';
  return text;
}

// Four blocks of 100 bytes and inputs of 10, the third the slowest, and a head of 50.
std::vector<UnitCost> four_blocks() {
  return {{"h.0", 100, 10, 1},
          {"h.1", 100, 10, 1},
          {"h.2", 100, 10, 5},
          {"h.3", 100, 10, 1},
          {"head", 50, 10, 1}};
}

}  // namespace

TEST_CASE("activations take most where forward has ended, or where a unit has run again") {
  CHECK(peak_bytes(four_blocks(), {false, false, false, false, false}) == 450);
  // All before the head keep their inputs: 4 x 10 + 50; before that h.3 is there: 3 x 10 + 110.
  CHECK(peak_bytes(four_blocks(), {true, true, true, true, false}) == 140);
  CHECK(peak_bytes(four_blocks(), {true, false, false, false, false}) == 360);
  CHECK(peak_bytes(std::vector<UnitCost>(), {}) == 0);
}

TEST_CASE("as few units run again as keep to the budget, the cheapest ones") {
  const auto chosen = [](std::int64_t budget) {
    return as_digits(within_budget(four_blocks(), budget));
  };
  CHECK(chosen(450) == "00000");
  CHECK(chosen(449) == "10000");
  CHECK(chosen(360) == "10000");
  CHECK(chosen(270) == "11000");
  CHECK(chosen(269) == "11010");  // not the slow one
  CHECK(chosen(140) == "11110");
  // What was taken first is not needed beside what came next: 10 + 100 in the backward of b.
  const std::vector<UnitCost> uneven{{"a", 10, 0, 0.001}, {"b", 100, 0, 1}, {"head", 50, 0, 1}};
  CHECK(as_digits(within_budget(uneven, 120)) == "010");
}

TEST_CASE("a budget that cannot be kept to is come near to, and the last unit never runs again") {
  const std::vector<bool> again = within_budget(four_blocks(), 1);
  CHECK_FALSE(again.back());
  CHECK(peak_bytes(four_blocks(), again) == 140);
  // Without a again it would be a byte more.
  const std::vector<UnitCost> near{{"a", 11, 10, 1}, {"b", 100, 10, 1}, {"head", 200, 10, 1}};
  CHECK(as_digits(within_budget(near, 1)) == "110");
  CHECK(within_budget({}, 1).empty());
  CHECK(as_digits(within_budget({{"all", 100, 10, 1}}, 1)) == "0");
}

TEST_CASE("a block that is saved twice counts once, and one that lasts does not") {
  const at::Tensor weight = at::ones({100}).requires_grad_();
  SavedBytes saved({weight});
  {
    const SavedTensorsScope scope(saved.hooks());
    const at::Tensor out = weight.exp();  // saves its output, 400 bytes
    const at::Tensor twice = out * weight + out.view({2, 50}).sum() * out;
    CHECK(twice.defined());
  }
  CHECK(saved.take() == 404);  // and the sum
  CHECK(saved.take() == 0);
  CHECK(bytes_of({at::ones({3}), at::ones({2, 2})}) == 28);
}

TEST_CASE("lasting tensors are not counted, and a tensor without storage has no bytes") {
  std::vector<at::Tensor> lasting;
  for (int i = 0; i < 5; ++i) lasting.push_back(at::ones({100}).requires_grad_());
  std::sort(lasting.begin(), lasting.end(), [](const at::Tensor& a, const at::Tensor& b) {
    return a.const_data_ptr() > b.const_data_ptr();
  });
  SavedBytes saved(lasting);
  const SavedTensorsScope scope(saved.hooks());
  for (const at::Tensor& one : lasting) CHECK(one.square().defined());  // saves it
  CHECK(saved.take() == 0);
  const at::Tensor sparse = at::eye(3).to_sparse();
  CHECK(at::mm(sparse, at::ones({3, 1}).requires_grad_()).defined());  // saves the sparse one
  CHECK(saved.take() == 0);
}

TEST_CASE("what was measured has no backward") {
  SavedBytes saved({});
  const at::Tensor input = at::ones({3}).requires_grad_();
  at::Tensor sum;
  {
    const SavedTensorsScope scope(saved.hooks());
    sum = input.square().sum();
  }
  CHECK_THROWS_WITH(sum.backward(), "recompute: a forward that is measured has no backward");
}

}  // namespace scaletrain::engine
