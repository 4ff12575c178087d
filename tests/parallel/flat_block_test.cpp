#include "lib/parallel/flat_block.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>

namespace scaletrain::parallel {
namespace {

// Of 6 and of 5 elements.
std::vector<units::NamedParameter> two_parameters(at::ScalarType type) {
  return {{.name = "matrix", .tensor = at::arange(6.0).view({2, 3}).to(type)},
          {.name = "vector", .tensor = at::ones({5}, type)}};
}

struct BlockOfTwo {
  explicit BlockOfTwo(at::ScalarType type = at::kFloat) : parameters(two_parameters(type)) {
    for (units::NamedParameter& one : parameters) one.tensor.requires_grad_(true);
  }

  std::vector<units::NamedParameter> parameters;
  FlatBlock block{plan_flats(parameters, {{"matrix", "vector"}}, 2).front(), parameters, 2,
                  at::Device(at::kCPU)};
};

// For its lifetime memory that nobody has written holds NaN.
class NanInNewMemory {
 public:
  NanInNewMemory() { fill(true); }
  ~NanInNewMemory() { fill(false); }

 private:
  static void fill(bool on) {
    at::globalContext().setDeterministicFillUninitializedMemory(on);
    at::globalContext().setDeterministicAlgorithms(on, /*warn_only=*/false);
  }
};

}  // namespace

TEST_CASE("a block has its parameters' values, and they are views of it") {
  BlockOfTwo one;
  CHECK(one.block.whole.numel() == 2 * one.block.plan.part);
  CHECK(one.parameters[0].tensor.equal(two_parameters(at::kFloat)[0].tensor));
  const at::NoGradGuard no_grad;
  one.block.whole.fill_(7);
  for (const units::NamedParameter& parameter : one.parameters) {
    CHECK(parameter.tensor.eq(7).all().item<bool>());
  }
  one.block.shard_of(1).fill_(8);
  CHECK(one.block.whole.eq(8).sum().item<std::int64_t>() == one.block.plan.part);
}

TEST_CASE("gradients are added up where their parameters lie, and zero where none has come") {
  BlockOfTwo one;
  const at::NoGradGuard no_grad;
  at::Tensor& gradient = one.parameters[0].tensor.mutable_grad();
  for (const double value : {2.0, 3.0}) {
    gradient = at::full({2, 3}, value);
    CHECK(one.block.has_gradient(0));
    one.block.add_gradient(0);
    CHECK(!one.block.has_gradient(0));
  }
  one.block.sums.narrow(0, one.block.plan.slots[1].begin, 5).fill_(9);  // what memory holds
  const at::Tensor sums = one.block.complete_sums();
  CHECK(sums.sum().item<float>() == 6 * 5);
  CHECK(sums.narrow(0, one.block.plan.slots[0].begin, 6).eq(5).all().item<bool>());

  one.block.drop_sums();
  CHECK(!one.block.sums.defined());
  CHECK(one.block.complete_sums().eq(0).all().item<bool>());  // of none at all
}

TEST_CASE("a block is of its parameters' type, zero where none lies, and so are its sums") {
  const NanInNewMemory fill;
  const at::NoGradGuard no_grad;
  CHECK(at::empty({1}).isnan().item<bool>());
  for (const at::ScalarType type : {at::kFloat, at::kDouble}) {
    BlockOfTwo one(type);
    CHECK((one.block.whole.scalar_type() == type));
    CHECK(one.block.whole.sum().item<double>() == 15 + 5);  // of all that there is, gaps too
    // Dropped sums, or a step's that begins anew, are in no later ones.
    for (const bool is_new_step : {false, true, false}) {
      CAPTURE(is_new_step);
      one.parameters[0].tensor.mutable_grad() = at::full({2, 3}, 2, type);
      one.parameters[1].tensor.mutable_grad() = at::full({5}, 3, type);
      for (const std::size_t slot : {0, 1}) one.block.add_gradient(slot);
      const at::Tensor sums = one.block.complete_sums();
      CHECK((sums.scalar_type() == type));
      CHECK(sums.sum().item<double>() == 6 * 2 + 5 * 3);
      if (is_new_step) {
        one.block.zero_grad();
      } else {
        one.block.drop_sums();
        CHECK(sums.storage().nbytes() == 0);  // though this test still holds them
      }
      CHECK(!one.block.sums.defined());
    }
  }
}

TEST_CASE("gradients of parameters that are bf16 from now on are added up in fp32") {
  BlockOfTwo one;
  const at::NoGradGuard no_grad;
  one.block.narrow();
  CHECK((one.parameters[1].tensor.scalar_type() == at::kBFloat16));
  for (const double value : {256.0, 1.0}) {  // their sum has no bf16
    one.parameters[1].tensor.mutable_grad() = at::full({5}, value, at::kBFloat16);
    one.block.add_gradient(1);
  }
  CHECK(one.block.complete_sums().sum().item<float>() == 5 * 257);
}

TEST_CASE("a new step begins without gradients") {
  BlockOfTwo one;
  one.block.own = one.block.shard_of(0);
  one.block.owned.push_back({.tensor = one.block.own.narrow(0, 0, 6).detach(), .begin = 0});
  one.block.owned[0].tensor.mutable_grad() = at::ones({6});
  one.block.gradient = at::ones({one.block.plan.part});
  one.parameters[0].tensor.mutable_grad() = at::ones({2, 3});
  one.block.add_gradient(0);
  one.block.zero_grad();
  CHECK(!one.block.owned[0].tensor.grad().defined());
  CHECK(!one.block.gradient.defined());
  CHECK(one.block.complete_sums().eq(0).all().item<bool>());
}

}  // namespace scaletrain::parallel
