#include "lib/train/integrity/product_check.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "lib/nn/layers/dense.h"
#include "lib/nn/layers/linear.h"

namespace scaletrain::train {
namespace {

struct Sizes {
  std::vector<std::int64_t> rows;
  std::int64_t in = 0, out = 0;
};

struct Product {
  at::Tensor input, weight, bias, output;

  double ratio() const { return checksum_ratio(input, weight, bias, output).item<double>(); }
};

Product product(const std::vector<std::int64_t>& rows, std::int64_t in, std::int64_t out,
                at::ScalarType type, bool has_bias) {
  std::vector<std::int64_t> shape = rows;
  shape.push_back(in);
  Product result{.input = at::randn(shape).to(type),
                 .weight = at::randn({out, in}).to(type),
                 .bias = has_bias ? at::randn({out}).to(type) : at::Tensor(),
                 .output = {}};
  result.output = nn::dense(result.input, result.weight, result.bias);
  return result;
}

// Two linear layers of other sizes.
class TwoLayers : public nn::Model {
 public:
  TwoLayers() {
    first = register_module("first", std::make_shared<nn::Linear>(6, 5));
    second = register_module("second", std::make_shared<nn::Linear>(5, 4));
    for (at::Tensor& parameter : parameters()) parameter.detach().normal_();
  }
  std::vector<units::Unit> units() override { return {}; }
  at::Tensor run(const at::Tensor& input) const { return second->forward(first->forward(input)); }

  std::shared_ptr<nn::Linear> first, second;
};

}  // namespace

TEST_CASE("the checksums of right products are far within the tolerance, for each dtype and size") {
  at::manual_seed(1);
  for (const at::ScalarType type : {at::kFloat, at::kDouble, at::kBFloat16}) {
    for (const bool has_bias : {false, true}) {
      for (const auto& [rows, in, out] : std::vector<Sizes>{
               {{1}, 1, 1}, {{3}, 5, 7}, {{2, 64}, 256, 64}, {{4, 128}, 512, 1024}}) {
        CAPTURE(type);
        CAPTURE(in);
        CAPTURE(out);
        CHECK(product(rows, in, out, type, has_bias).ratio() < 0.6);
      }
    }
  }
}

TEST_CASE("values of very different size, zeros and empty products raise no false alarm") {
  at::manual_seed(2);
  Product scaled = product({64}, 32, 16, at::kFloat, true);
  scaled.input.mul_(at::logspace(-20, 15, 64).unsqueeze(1));
  scaled.weight.mul_(at::logspace(-10, 10, 16).unsqueeze(1));
  scaled.output = nn::dense(scaled.input, scaled.weight, scaled.bias);
  CHECK(scaled.ratio() < 0.6);
  const at::Tensor zeros = at::zeros({4, 4});
  CHECK(Product{zeros, zeros, {}, zeros}.ratio() == 0);
  const at::Tensor none = at::zeros({0, 4});
  CHECK(Product{none, zeros, {}, none}.ratio() == 0);
  // A factor that is not finite is an anomaly of its own, not a wrong product.
  Product infinite = product({4}, 4, 4, at::kFloat, false);
  infinite.input[0][0].fill_(std::numeric_limits<double>::infinity());
  infinite.output = nn::dense(infinite.input, infinite.weight);
  CHECK(infinite.ratio() == 0);
}

TEST_CASE("an element that is wrong by more than the tolerance is found") {
  at::manual_seed(3);
  for (const at::ScalarType type : {at::kFloat, at::kDouble, at::kBFloat16}) {
    Product one = product({8, 32}, 128, 64, type, true);
    const at::Tensor right = one.output.clone();
    CAPTURE(type);
    // lambda (sqrt(k) u |X|_F |w_j| + u_Y |y_j|) of column 5, with u of the accumulation.
    const double unit = type == at::kDouble ? std::ldexp(1, -53) : std::ldexp(1, -24);
    const double rounding = type == at::kBFloat16 ? std::ldexp(1, -8) : unit;
    const double norms = one.input.to(at::kDouble).norm().item<double>() *
                         one.weight[5].to(at::kDouble).norm().item<double>();
    const double column = right.to(at::kDouble).view({-1, 64}).select(1, 5).norm().item<double>();
    const double tolerance = 8 * (std::sqrt(128) * unit * norms + rounding * column);
    one.output[3][7][5].add_(2 * tolerance);
    CHECK(one.ratio() > 1.3);
    CHECK(one.ratio() < 2.7);
    one.output = right.clone();
    one.output[3][7][5].fill_(std::numeric_limits<double>::quiet_NaN());
    CHECK(one.ratio() > 1e300);
  }
}

TEST_CASE("in turn each step checks one layer, and a wrong product is named with step and layer") {
  at::manual_seed(4);
  const at::Tensor input = at::randn({3, 6});
  for (const bool every : {false, true}) {
    CAPTURE(every);
    const auto model = std::make_shared<TwoLayers>();
    const at::Tensor expected = model->run(input);
    ::setenv("SCALETRAIN_FAULT",
             "flip-bit:rank=0@step=2:where=products:bit=30:index=6;"  // layer 0, element 3
             "flip-bit:rank=0@step=3:where=products:bit=30:index=7;"  // layer 1, which is checked
             "flip-bit:rank=0@step=5:where=products:bit=30:index=6",
             1);
    ProductCheck check(*model, every, 1, 0);
    ::unsetenv("SCALETRAIN_FAULT");
    REQUIRE(check.layers() == 2);
    std::string found;
    for (std::int64_t step = 1; step <= 5; ++step) {
      {
        const at::NoGradGuard evaluation;
        model->run(input);
      }
      const at::Tensor output = model->run(input);
      if (step == 1) CHECK(at::equal(output, expected));
      check.begin(step + 1);
      if (const auto wrong = check.take()) {
        CHECK(wrong->ratio > 1000);
        found += fmt::format("{} {}, ", wrong->step, wrong->layer);
      }
    }
    // Step 2 checks layer 0, steps 3 and 5 layer 1.
    CHECK(found == (every ? "2 first, 3 second, 5 first, " : "2 first, 3 second, "));
    CHECK_FALSE(check.take());
  }
}

}  // namespace scaletrain::train
