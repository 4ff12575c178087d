#include "lib/engine/offload.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "lib/units/memory_meter.h"
#include "tests/engine/one_rank.h"

namespace scaletrain::engine {
namespace {

constexpr std::int64_t kFloats = 4096;  // 16 kB

recipe::Recipe offloaded(recipe::Recipe recipe) {
  recipe.offload = recipe::Offload{.activations = true, .optimizer_folder = {}};
  return recipe;
}

// Gradients and buffers of a step of two micro-batches, and the bytes that were moved.
struct OffloadedStep {
  std::vector<at::Tensor> tensors;
  std::int64_t moved;
};
OffloadedStep take_step(const recipe::Recipe& recipe) {
  testing::OneRank rank(recipe);
  OffloadedStep result{.tensors = rank.step(0, {testing::example_of(recipe, 2, 1),
                                                testing::example_of(recipe, 2, 2)}),
                       .moved = rank.engine.offloaded_bytes()};
  return result;
}

bool have_same_bits(const OffloadedStep& a, const OffloadedStep& b) {
  bool same = a.tensors.size() == b.tensors.size();
  for (std::size_t i = 0; same && i < a.tensors.size(); ++i) {
    same = at::equal(a.tensors[i], b.tensors[i]);
  }
  return same;
}

}  // namespace

TEST_CASE("activations that were on the host give the same bits, for models of all kinds") {
  std::vector<recipe::Recipe> recipes{
      testing::recipe_of_model("vit_tiny", {{"patch_size", std::int64_t{4}},
                                            {"dim", std::int64_t{16}},
                                            {"depth", std::int64_t{3}},
                                            {"heads", std::int64_t{2}},
                                            {"dropout", 0.2},
                                            {"drop_path", 0.2}}),
      testing::recipe_of_model("gpt2", {{"vocab_size", std::int64_t{11}},
                                        {"positions", std::int64_t{64}},
                                        {"dim", std::int64_t{16}},
                                        {"depth", std::int64_t{3}},
                                        {"heads", std::int64_t{2}},
                                        {"dropout", 0.2}}),
      testing::recipe_of_model("resnet18")};
  for (recipe::Recipe& recipe : recipes) {
    CAPTURE(recipe.model.name);
    const OffloadedStep plain = take_step(recipe), moved = take_step(offloaded(recipe));
    CHECK(plain.moved == 0);
    CHECK(moved.moved > 10000);
    CHECK(have_same_bits(moved, plain));
  }
  // Beside units that run again, and chunks of the loss, whose last unit is the head alone.
  recipe::Recipe& gpt = recipes[1];
  gpt.recompute = recipe::Recompute{.units = {}, .every = 2, .match = {}};
  gpt.loss.chunk = 16;
  CHECK(have_same_bits(take_step(offloaded(gpt)), take_step(gpt)));
}

TEST_CASE("each block goes once, in whatever layout it is saved, and the model's stay") {
  const at::Tensor weight = at::randn({kFloats}).requires_grad_();
  ActivationOffload offload(at::kCPU, {weight});
  const at::Tensor input = at::randn({64, 64});
  const at::Tensor twin = weight.detach().clone().requires_grad_();
  const auto loss_of = [&](const at::Tensor& parameter) {
    const at::Tensor out = parameter.view({64, 64}).mul(input);  // saves input and parameter
    return (out.t() * out.narrow(0, 1, 1) * out).sum();          // views of one block
  };
  at::Tensor loss;
  {
    const SavedTensorsScope scope(offload.hooks());
    loss = loss_of(weight);
  }
  loss.backward();
  loss_of(twin).backward();
  CHECK(at::equal(weight.grad(), twin.grad()));
  // The input, the product, and the product of its views.
  CHECK(offload.moved_bytes() == 3 * 4 * kFloats);
}

TEST_CASE("what went to the host is gone from here, also where two operations save it") {
  constexpr std::int64_t kBytes = 4 * kFloats;
  ActivationOffload offload(at::kCPU, {});
  const at::Tensor weight = at::ones({kFloats}).requires_grad_();
  const auto meter = std::make_shared<units::MemoryMeter>(at::kCPU);
  const units::MemoryWatch watch(meter);
  at::Tensor first, second;
  {
    const SavedTensorsScope scope(offload.hooks());
    const at::Tensor values = at::full({kFloats}, 2.0);
    first = weight * values;  // saves values alone
    second = weight * values;
  }
  CHECK(meter->live().total() == 3 * kBytes);  // the products, and a copy of the values
  (first + second).sum().backward();
  CHECK(weight.grad()[0].item<double>() == 2 + 2);
}

TEST_CASE("a tensor without a block of memory stays") {
  ActivationOffload offload(at::kCPU, {});
  const at::Tensor sparse = at::eye(3).to_sparse();
  const at::Tensor weight = at::ones({3, 1}).requires_grad_();
  at::Tensor sum;
  {
    const SavedTensorsScope scope(offload.hooks());
    sum = at::mm(sparse, weight).sum();  // saves the sparse one
  }
  sum.backward();
  CHECK(at::equal(weight.grad(), at::ones({3, 1})));
  CHECK(offload.moved_bytes() == 0);
}

TEST_CASE("all tensors of the model stay, in whatever order they are named") {
  std::vector<at::Tensor> lasting;
  for (int i = 0; i < 5; ++i) lasting.push_back(at::ones({kFloats}).requires_grad_());
  std::sort(lasting.begin(), lasting.end(), [](const at::Tensor& a, const at::Tensor& b) {
    return a.const_data_ptr() > b.const_data_ptr();
  });
  ActivationOffload offload(at::kCPU, lasting);
  const SavedTensorsScope scope(offload.hooks());
  for (const at::Tensor& one : lasting) CHECK(one.square().defined());  // saves it
  CHECK(offload.moved_bytes() == 0);
}

TEST_CASE("a block that was changed in between is another one, and small ones stay") {
  ActivationOffload offload(at::kCPU, {});
  const at::Tensor weight = at::ones({kFloats}).requires_grad_();
  const at::Tensor values = at::full({kFloats}, 2.0);
  at::Tensor first, second;
  {
    const SavedTensorsScope scope(offload.hooks());
    first = weight * values;  // saves values alone
    values.fill_(5);
    second = weight * values;
    CHECK(offload.moved_bytes() == 2 * 4 * kFloats);
    const at::Tensor small = at::ones({3}).requires_grad_() * at::ones({3});
  }
  (first + second).sum().backward();
  CHECK(weight.grad()[0].item<double>() == 2 + 5);
  CHECK(offload.moved_bytes() == 2 * 4 * kFloats);
}

}  // namespace scaletrain::engine
