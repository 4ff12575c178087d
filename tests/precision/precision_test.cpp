#include "lib/precision/precision.h"

#include <ATen/ATen.h>
#include <ATen/Context.h>
#include <ATen/autocast_mode.h>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <fstream>
#include <vector>

#include "lib/core/error.h"
#include "lib/core/log.h"
#include "lib/precision/float8.h"
#include "lib/recipe/catalog/lists.h"

namespace {

using namespace scaletrain;

recipe::Component config_of(const std::string& name) {
  recipe::Component config;
  choose(config, *recipe::precisions().find(name));
  if (config.options.contains("simulate")) config.options["simulate"] = true;  // on a CPU
  return config;
}

std::unique_ptr<precision::Precision> make(const std::string& name,
                                           const precision::Hardware& hardware = {}) {
  return precision::make_precision(config_of(name), hardware);
}

precision::Hardware gpu(int compute_capability) { return {{at::kCUDA, 0}, compute_capability}; }

// Without AVX-512 LibTorch's bf16 is slow, not wrong: a CPU that claims to have it serves any test.
precision::Hardware cpu(bool avx512) { return {.device = at::kCPU, .avx512 = avx512}; }

TEST_CASE("bf16 multiplies matrices in bf16, keeps parameters and their gradients in fp32") {
  const at::Tensor weight = at::randn({4, 4}).requires_grad_(true);
  const auto bf16 = make("bf16", cpu(true));
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

TEST_CASE("bf16 is fp32 where LibTorch would go through the numbers one by one") {
  const at::Tensor product = make("bf16", cpu(false))->forward([] {
    return at::mm(at::ones({2, 4}), at::ones({4, 4}));
  });
  CHECK((product.scalar_type() == at::kFloat));
}

TEST_CASE("bf16 on a GPU needs compute capability 8.0, and is fp32 before") {
  for (const int capability : {70, 75, 80, 90, 100}) {
    CAPTURE(capability);
    bool in_autocast = false;
    at::ScalarType type = at::kFloat;
    const at::ScalarType before = at::autocast::get_autocast_dtype(at::kCUDA);
    make("bf16", gpu(capability))->forward([&] {
      in_autocast = at::autocast::is_autocast_enabled(at::kCUDA);
      type = at::autocast::get_autocast_dtype(at::kCUDA);
      return at::ones({1});
    });
    CHECK(in_autocast == (capability >= 80));
    CHECK((type == (in_autocast ? at::kBFloat16 : at::kHalf)));  // LibTorch's own is fp16
    CHECK((at::autocast::get_autocast_dtype(at::kCUDA) == before));
  }
}

TEST_CASE("a GPU's products are TF32 where the recipe asks for it and the GPU has it") {
  const auto allowed = [] {
    return std::pair(at::globalContext().allowTF32CuDNN(), at::globalContext().allowTF32CuBLAS());
  };
  make("tf32", gpu(80));
  CHECK(allowed() == std::pair(true, true));
  make("fp32", gpu(80));
  CHECK(allowed() == std::pair(false, false));
  make("tf32", gpu(90));
  CHECK(allowed() == std::pair(true, true));
  make("tf32", gpu(75));
  CHECK(allowed() == std::pair(false, false));
}

TEST_CASE("what the hardware lacks is fp32, and says so once") {
  const auto said = [](const char* name, const precision::Hardware& hardware) {
    std::string text;
    core::set_warning_listener([&](const std::string& line) { text += line + ";"; });
    const at::Tensor product = make(name, hardware)->forward([] {
      return at::mm(at::ones({2, 4}), at::ones({4, 4}));
    });
    core::set_warning_listener({});
    CHECK((product.scalar_type() == at::kFloat));
    return text;
  };
  CHECK(said("tf32", {}) == "warning: a CPU has no TF32: fp32 is used;");
  CHECK(said("tf32", gpu(75)) ==
        "warning: this GPU has compute capability 7.5 and TF32 needs 8.0: fp32 is used;");
  CHECK(said("bf16", cpu(false)) ==
        "warning: this CPU has no AVX-512 and LibTorch no fast bf16 without it: fp32 is used;");
  CHECK(said("bf16", gpu(75)) ==
        "warning: this GPU has compute capability 7.5 and bf16 needs 8.0: fp32 is used;");
  CHECK(said("fp32", {}).empty());
  CHECK(said("tf32", gpu(80)).empty());
}

TEST_CASE("a CPU has AVX-512 where the kernel lists what bf16 needs of it") {
  std::ifstream file("/proc/cpuinfo");
  std::string line;
  while (std::getline(file, line) && !line.starts_with("flags")) {
  }
  if (!file) return;  // not an x86
  const auto has = [&](const std::string& flag) {
    return fmt::format("{} ", line).find(fmt::format(" {} ", flag)) != std::string::npos;
  };
  CHECK(precision::has_avx512() == (has("avx512bw") && has("avx512vl") && has("avx512dq")));
}

TEST_CASE("fp32 leaves the numbers alone") {
  const at::Tensor product = make("fp32")->forward([] {
    return at::mm(at::ones({2, 4}), at::ones({4, 4}));
  });
  CHECK((product.scalar_type() == at::kFloat));
}

TEST_CASE("bf16 sees what the optimizer wrote since the last forward") {
  const at::Tensor weight = at::ones({1, 1}).requires_grad_(true);
  const auto bf16 = make("bf16", cpu(true));
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
  const auto bf16 = make("bf16", cpu(true));
  CHECK_THROWS_AS(bf16->forward([]() -> at::Tensor { throw std::runtime_error("no"); }),
                  std::runtime_error);
  CHECK(!at::autocast::is_autocast_enabled(at::kCPU));
}

TEST_CASE("what scales no loss has no state to save") {
  for (const char* name : {"fp32", "bf16", "tf32", "bf16_pure", "fp64"}) {
    CAPTURE(name);
    const auto precision = make(name);
    CHECK(precision->state().empty());
    precision->update(at::zeros({}));
    CHECK(!precision->loss_scale().defined());
    CHECK(precision->scale(at::full({}, 3.0)).item<double>() == 3);
  }
}

TEST_CASE("fp16 multiplies matrices in fp16, keeps parameters and their gradients in fp32") {
  const at::Tensor weight = at::randn({4, 4}).requires_grad_(true);
  const auto fp16 = make("fp16");
  at::ScalarType inside = at::kFloat;
  const at::Tensor loss = fp16->forward([&] {
    const at::Tensor product = at::mm(at::ones({2, 4}), weight);
    inside = product.scalar_type();
    return product.to(at::kFloat).sum();
  });
  CHECK((inside == at::kHalf));
  CHECK((fp16->weights() == at::kFloat));
  // 2 would be 131,072 times the default scale, more than fp16 holds.
  fp16->scale(loss / 64).backward();
  CHECK(at::equal(weight.grad(), at::full({4, 4}, 2048.0)));
  fp16->unscale({weight.grad()});
  CHECK(at::equal(weight.grad(), at::full({4, 4}, 2.0 / 64)));
}

TEST_CASE("the loss scale falls where a step is left out, and grows after enough that are not") {
  recipe::Component config = config_of("fp16");
  config.options = {{"init_scale", 8.0},
                    {"growth_factor", 4.0},
                    {"backoff_factor", 0.25},
                    {"growth_interval", std::int64_t{2}}};
  const auto fp16 = precision::make_precision(config, {});
  std::vector<double> scales;
  for (const double found_inf : {0, 0, 0, 1, 0, 0}) {
    fp16->update(at::full({}, found_inf, at::kFloat));
    scales.push_back(fp16->loss_scale().item<double>());
  }
  CHECK(scales == std::vector<double>{8, 32, 32, 8, 8, 32});
}

TEST_CASE("a loss scale goes on from its state") {
  recipe::Component config = config_of("fp16");
  config.options["growth_interval"] = std::int64_t{3};
  config.options["backoff_factor"] = 0.3;  // no power of two
  const auto whole = precision::make_precision(config, {});
  whole->update(at::ones({}));
  whole->update(at::zeros({}));
  const auto other = precision::make_precision(config, {});
  for (const auto& [name, tensor] : whole->state()) other->state().at(name).copy_(tensor);
  for (const auto& one : {whole.get(), other.get()}) one->update(at::zeros({}));
  CHECK(other->loss_scale().item<float>() < 20000);
  for (const auto& one : {whole.get(), other.get()}) one->update(at::zeros({}));
  CHECK(other->loss_scale().item<float>() == whole->loss_scale().item<float>());
  CHECK(other->loss_scale().item<float>() > 39000);  // the third step in a row: it has grown
}

TEST_CASE("fp8 is refused by the name of what has none, unless it is simulated") {
  recipe::Component config = config_of("fp8");
  CHECK(static_cast<bool>(precision::make_precision(config, {})->linear_product()));
  CHECK(!make("bf16")->linear_product());
  config.options["simulate"] = false;
  CHECK_THROWS_WITH_AS(precision::make_precision(config, {}),
                       "/precision: fp8 needs a GPU of compute capability 8.9, and this is a CPU\n"
                       "  use bf16, or compute the same roundings slowly with \"simulate\": true",
                       core::RecipeError);
  CHECK_THROWS_WITH_AS(precision::make_precision(config, gpu(80)),
                       "/precision: fp8 needs a GPU of compute capability 8.9, and this is a GPU "
                       "of 8.0\n  use bf16, or compute the same roundings slowly with "
                       "\"simulate\": true",
                       core::RecipeError);
  CHECK_NOTHROW(precision::make_precision(config, gpu(89)));
}

TEST_CASE("bf16_pure has bf16 parameters with gradients of bf16, and losses in fp32") {
  const auto pure = make("bf16_pure", cpu(true));
  CHECK((pure->weights() == at::kBFloat16));
  const at::Tensor weight = at::ones({4, 4}, at::kBFloat16).requires_grad_(true);
  const at::Tensor loss = pure->forward([&] {
    return at::mm(at::ones({2, 4}), weight).to(at::kFloat).sum();
  });
  CHECK((loss.scalar_type() == at::kFloat));
  pure->scale(loss).backward();
  CHECK((weight.grad().scalar_type() == at::kBFloat16));
}

TEST_CASE("bf16_pure says where its steps are slow") {
  const auto said = [](const precision::Hardware& hardware) {
    std::string text;
    core::set_warning_listener([&](const std::string& line) { text += line; });
    make("bf16_pure", hardware);
    core::set_warning_listener({});
    return text;
  };
  CHECK(
      said(cpu(false)) ==
      "warning: this CPU has no fast bf16: the weights are bf16 all the same, and steps are slow");
  CHECK(
      said(gpu(75)) ==
      "warning: this GPU has no fast bf16: the weights are bf16 all the same, and steps are slow");
  CHECK(said(cpu(true)).empty());
  CHECK(said(gpu(80)).empty());
}

TEST_CASE("without gradients there is nothing to divide by the loss scale") {
  CHECK_NOTHROW(make("fp16")->unscale({}));
}

TEST_CASE("fp8 multiplies by the recipe's factors, in bf16 where that is quick") {
  at::manual_seed(1);
  // Rows of different sizes, so that one factor for all of them rounds otherwise.
  const at::Tensor input =
                       at::randn({4, 16}) * at::tensor({1.0F, 1e-3F, 1e-4F, 1e-5F}).view({4, 1}),
                   weight = at::randn({16, 16}), bias = at::randn({16});
  for (const bool rowwise : {false, true}) {
    for (const bool avx512 : {false, true}) {
      recipe::Component config = config_of("fp8");
      config.options["scaling"] = std::string(rowwise ? "rowwise" : "tensorwise");
      const auto fp8 = precision::make_precision(config, cpu(avx512));
      const precision::Float8 how{
          .scaling = rowwise ? precision::Scaling::kRowwise : precision::Scaling::kTensorwise,
          .result = avx512 ? at::kBFloat16 : at::kFloat,
          .simulated = true};
      const at::Tensor found = fp8->linear_product()(input, weight, bias);
      REQUIRE(found.defined());
      CHECK((found.scalar_type() == how.result));
      CHECK((at::equal(found, precision::float8_linear(input, weight, bias, how))));
    }
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
