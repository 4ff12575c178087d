#include "lib/precision/precision.h"

#include <ATen/ATen.h>
#include <ATen/autocast_mode.h>
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "lib/recipe/lists.h"

namespace {

using namespace scaletrain;

std::unique_ptr<precision::Precision> make(const std::string& name) {
  recipe::Component config;
  config.name = name;
  return precision::make_precision(config, at::kCPU);
}

const bool kHasBf16 = precision::multiplies_bf16(at::kCPU);

TEST_CASE("bf16 multiplies matrices in bf16, keeps parameters and their gradients in fp32" *
          doctest::skip(!kHasBf16)) {
  const at::Tensor weight = at::randn({4, 4}).requires_grad_(true);
  const auto bf16 = make("bf16");
  at::ScalarType inside = at::kFloat;
  const at::Tensor loss = bf16->forward([&] {
    const at::Tensor product = at::mm(at::ones({2, 4}), weight);
    inside = product.scalar_type();
    return product.to(at::kFloat).sum();
  });
  CHECK((inside == at::kBFloat16));
  CHECK((loss.scalar_type() == at::kFloat));
  bf16->scale(loss).backward();
  CHECK((weight.scalar_type() == at::kFloat));
  CHECK((weight.grad().scalar_type() == at::kFloat));
  CHECK(at::equal(weight.grad(), at::full({4, 4}, 2.0)));
}

TEST_CASE("bf16 is fp32 where LibTorch would go through the numbers one by one" *
          doctest::skip(kHasBf16)) {
  const at::Tensor product = make("bf16")->forward([] {
    return at::mm(at::ones({2, 4}), at::ones({4, 4}));
  });
  CHECK((product.scalar_type() == at::kFloat));
}

TEST_CASE("fp32 leaves the numbers alone") {
  const at::Tensor product = make("fp32")->forward([] {
    return at::mm(at::ones({2, 4}), at::ones({4, 4}));
  });
  CHECK((product.scalar_type() == at::kFloat));
}

TEST_CASE("bf16 sees what the optimizer wrote since the last forward") {
  const at::Tensor weight = at::ones({1, 1}).requires_grad_(true);
  const auto bf16 = make("bf16");
  const auto product = [&] {
    return bf16->forward([&] {
                 return at::mm(at::ones({1, 1}), weight).to(at::kFloat);
               })
        .item<float>();
  };
  CHECK(product() == 1);
  weight.detach().fill_(2);
  CHECK(product() == 2);
}

TEST_CASE("autocast ends with the forward, also when that throws") {
  const auto bf16 = make("bf16");
  CHECK_THROWS_AS(bf16->forward([]() -> at::Tensor { throw std::runtime_error("no"); }),
                  std::runtime_error);
  CHECK(!at::autocast::is_autocast_enabled(at::kCPU));
}

TEST_CASE("neither has state to save") {
  for (const char* name : {"fp32", "bf16"}) {
    const auto precision = make(name);
    CHECK(precision->state() == nlohmann::json::object());
    precision->load_state(precision->state());
    precision->update(true);
  }
}

TEST_CASE("every row of precisions.def makes a precision that multiplies") {
  for (const recipe::Row& row : recipe::precisions().rows) {
    CAPTURE(row.name);
    const at::Tensor two = at::full({2, 2}, 2.0);
    const at::Tensor product = make(row.name)->forward([&] { return at::mm(two, two); });
    CHECK(product.to(at::kFloat).equal(at::full({2, 2}, 8.0)));
  }
}

}  // namespace
