#include "lib/precision/float8.h"

#include <ATen/ATen.h>
#include <ATen/autocast_mode.h>
#include <doctest/doctest.h>

#include <cmath>
#include <filesystem>
#include <limits>

#include "lib/dist/device.h"
#include "lib/precision/autocast.h"

namespace scaletrain::precision {
namespace {

// Magnitudes from 2^-18 to 1, rows of very different sizes.
at::Tensor spread_matrix(std::int64_t rows, std::int64_t columns) {
  const at::Tensor numbers = at::randn({rows, columns});
  return numbers * at::linspace(-18, 0, rows).exp2().view({-1, 1});
}

at::Tensor dequantised(const Quantised& quantised) {
  return quantised.values.to(at::kFloat) * quantised.scales;
}

// What is simulated in fp32.
Float8 in_fp32(Scaling scaling) {
  return {.scaling = scaling, .result = at::kFloat, .simulated = true};
}

double relative_error(const at::Tensor& found, const at::Tensor& wanted) {
  return ((found - wanted).norm() / wanted.norm()).item<double>();
}

// Whether `found` is a b of fp32, added up in whatever order.
bool is_product(const at::Tensor& found, const at::Tensor& a, const at::Tensor& b) {
  constexpr double kRounding = 2e-6;  // of some tens of numbers
  const at::Tensor error = (found - at::mm(a, b)).abs();
  return error.le(at::mm(a.abs(), b.abs()) * kRounding).all().item<bool>();
}

}  // namespace

TEST_CASE("a value is rounded by the part of itself that the format's fraction leaves") {
  at::manual_seed(1);
  const at::Tensor matrix = spread_matrix(32, 64);
  struct Format {
    at::ScalarType type;
    double share, step;  // of the value; of the largest magnitude, half of the smallest number
  };
  for (const Format& format :
       {Format{at::kFloat8_e4m3fn, std::ldexp(1, -4), std::ldexp(1, -10) / 448},
        Format{at::kFloat8_e5m2, std::ldexp(1, -3), std::ldexp(1, -17) / 57344}}) {
    for (const Scaling scaling : {Scaling::kTensorwise, Scaling::kRowwise}) {
      const Quantised quantised = quantise(matrix, format.type, scaling);
      const at::Tensor largest = scaling == Scaling::kTensorwise
                                     ? matrix.abs().amax()
                                     : matrix.abs().amax({1}, /*keepdim=*/true);
      const at::Tensor error = (dequantised(quantised) - matrix).abs();
      const at::Tensor bound =
          matrix.abs() * (format.share * (1 + 1e-5)) + largest * (format.step * (1 + 1e-5));
      CHECK(error.le(bound).all().item<bool>());
      CHECK(error.gt(bound / 4).any().item<bool>());  // it is rounded
      CHECK((quantised.values.scalar_type() == format.type));
      // The largest magnitude is the format's.
      const double top = format.type == at::kFloat8_e4m3fn ? 448 : 57344;
      CHECK(quantised.values.to(at::kFloat).abs().amax().item<double>() == top);
      CHECK(quantised.scales.max().item<double>() ==
            doctest::Approx(matrix.abs().max().item<double>() / top).epsilon(1e-6));
    }
  }
}

TEST_CASE("a factor for each row keeps small rows, which one of the whole tensor loses") {
  at::manual_seed(2);
  const at::Tensor matrix = spread_matrix(32, 64);
  const auto error_of_first_row = [&](Scaling scaling) {
    return relative_error(dequantised(quantise(matrix, at::kFloat8_e4m3fn, scaling))[0], matrix[0]);
  };
  CHECK(error_of_first_row(Scaling::kRowwise) < 0.05);
  CHECK(error_of_first_row(Scaling::kTensorwise) > 0.2);
}

TEST_CASE("zeros stay zeros, and what is not finite stays seen") {
  for (const Scaling scaling : {Scaling::kTensorwise, Scaling::kRowwise}) {
    CHECK(dequantised(quantise(at::zeros({4, 4}), at::kFloat8_e4m3fn, scaling))
              .eq(0)
              .all()
              .item<bool>());
    for (const double bad :
         {std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()}) {
      at::Tensor matrix = at::ones({4, 4});
      matrix[1][2] = bad;
      const at::Tensor found = dequantised(quantise(matrix, at::kFloat8_e5m2, scaling));
      CHECK(!found[1][2].isfinite().item<bool>());
    }
  }
}

// A sum of 64 products, each rounded twice by up to 2^-4, with signs at random.
TEST_CASE("a layer's three products are those of fp32 within the rounding of 8 bits") {
  at::manual_seed(3);
  const at::Tensor input = at::randn({3, 5, 64}), weight = at::randn({32, 64}) / 8,
                   bias = at::randn({32}), upper = at::randn({3, 5, 32});
  const auto all = [&](const std::function<at::Tensor(const at::Tensor&, const at::Tensor&,
                                                      const at::Tensor&)>& layer) {
    const at::Tensor x = input.clone().requires_grad_(true),
                     w = weight.clone().requires_grad_(true), b = bias.clone().requires_grad_(true);
    const at::Tensor y = layer(x, w, b);
    y.backward(upper);
    return std::vector<at::Tensor>{y.detach(), x.grad(), w.grad(), b.grad()};
  };
  const auto wanted = all([](const at::Tensor& x, const at::Tensor& w, const at::Tensor& b) {
    return at::linear(x, w, b);
  });
  for (const Scaling scaling : {Scaling::kTensorwise, Scaling::kRowwise}) {
    const auto found = all([&](const at::Tensor& x, const at::Tensor& w, const at::Tensor& b) {
      return float8_linear(x, w, b, in_fp32(scaling));
    });
    for (std::size_t i = 0; i < 3; ++i) {
      CAPTURE(i);
      CHECK(found[i].sizes() == wanted[i].sizes());
      const double error = relative_error(found[i], wanted[i]);
      CHECK(error > 1e-3);  // it is rounded
      CHECK(error < (i == 0 ? 0.05 : 0.08));
    }
    CHECK(at::allclose(found[3], wanted[3]));
  }
}

TEST_CASE("a product of no rows has a weight's gradient of zero") {
  const at::Tensor weight = at::randn({32, 16}).requires_grad_();
  const at::Tensor output =
      float8_linear(at::empty({0, 16}), weight, {}, in_fp32(Scaling::kTensorwise));
  CHECK(output.sizes() == at::IntArrayRef({0, 32}));
  output.sum().backward();
  CHECK(at::equal(weight.grad(), at::zeros({32, 16})));
}

TEST_CASE("what is simulated is the product of the rounded matrices") {
  at::manual_seed(4);
  const at::Tensor input = at::randn({6, 16}), weight = at::randn({8, 16});
  for (const Scaling scaling : {Scaling::kTensorwise, Scaling::kRowwise}) {
    const at::Tensor x = dequantised(quantise(input, at::kFloat8_e4m3fn, scaling)),
                     w = dequantised(quantise(weight, at::kFloat8_e4m3fn, scaling));
    const at::Tensor found = float8_linear(input, weight, {}, in_fp32(scaling));
    CHECK(at::allclose(found, at::mm(x, w.t()), 1e-5, 1e-6));
  }
}

TEST_CASE("gradients are the products of the rounded matrices, by the factors that are asked for") {
  at::manual_seed(8);
  const at::Tensor input = spread_matrix(16, 8).requires_grad_(true),
                   weight = spread_matrix(32, 8).requires_grad_(true),
                   upper = spread_matrix(16, 32);
  for (const Scaling scaling : {Scaling::kTensorwise, Scaling::kRowwise}) {
    const auto rounded = [scaling](const at::Tensor& matrix, at::ScalarType format) {
      return dequantised(quantise(matrix.detach(), format, scaling));
    };
    for (const at::Tensor& one : {input, weight}) one.mutable_grad().reset();
    float8_linear(input, weight, {}, in_fp32(scaling)).backward(upper);
    CHECK(is_product(input.grad(), rounded(upper, at::kFloat8_e5m2),
                     rounded(weight.t(), at::kFloat8_e4m3fn).t()));
    CHECK(is_product(weight.grad(), rounded(upper.t(), at::kFloat8_e5m2),
                     rounded(input.t(), at::kFloat8_e4m3fn).t()));
  }
}

TEST_CASE("under autocast sums are fp32 all the same, and the result is bf16") {
  at::manual_seed(5);
  const at::Tensor input = at::randn({6, 512}), weight = at::randn({16, 512});
  const Float8 how{.scaling = Scaling::kTensorwise, .result = at::kBFloat16, .simulated = true};
  const at::Tensor outside = float8_linear(input, weight, {}, how);
  const AutocastScope scope(at::kCPU, at::kBFloat16);
  const at::Tensor inside = float8_linear(input, weight, {}, how);
  CHECK((inside.scalar_type() == at::kBFloat16));
  CHECK((at::equal(inside, outside)));
}

TEST_CASE("a GPU's 8-bit products are those that are simulated; without a GPU skipped" *
          doctest::skip(!std::filesystem::exists("/dev/nvidiactl"))) {
  const at::Device device = dist::choose_device("cuda", {.rank = 0, .ranks = 1});
  at::manual_seed(6);
  for (const Scaling scaling : {Scaling::kTensorwise, Scaling::kRowwise}) {
    const Float8 real{.scaling = scaling}, simulated{.scaling = scaling, .simulated = true};
    std::vector<at::Tensor> grads;
    for (const Float8& how : {real, simulated}) {
      const auto on_gpu = at::TensorOptions(at::kFloat).device(device);
      at::manual_seed(7);
      const at::Tensor x = at::randn({30, 64}, on_gpu).requires_grad_(true),
                       w = at::randn({32, 64}, on_gpu).requires_grad_(true);
      const at::Tensor y = float8_linear(x, w, {}, how);
      y.backward(at::ones_like(y));
      for (const at::Tensor& one : {y.detach(), x.grad(), w.grad()}) {
        grads.push_back(one.to(at::kFloat).cpu());
      }
    }
    for (std::size_t i = 0; i < 3; ++i) CHECK(relative_error(grads[i], grads[i + 3]) < 0.01);
  }
}

}  // namespace scaletrain::precision
