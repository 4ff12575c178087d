#include "lib/nn/layers/initialise.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <doctest/doctest.h>

#include <cmath>

namespace scaletrain::nn {

TEST_CASE("fan-in initialization is uniform within 1 / sqrt(inputs)") {
  const at::Tensor drawn = at::empty({1000, 16});
  initialise_by_inputs(drawn, 16, at::detail::createCPUGenerator(3));
  CHECK(drawn.abs().max().item<double>() <= 0.25);  // 1 / sqrt(16)
  CHECK(drawn.abs().max().item<double>() > 0.249);
  CHECK(drawn.abs().mean().item<double>() == doctest::Approx(0.125).scale(0).epsilon(0.02));
  CHECK(drawn.mean().item<double>() == doctest::Approx(0).epsilon(0.005));
}

TEST_CASE(
    "fan-out initialization of a convolution is normal with sqrt(2 / (outputs * kernel size))") {
  const at::Tensor drawn = at::empty({50, 100, 3, 3});
  initialise_by_outputs(drawn, at::detail::createCPUGenerator(3));
  CHECK(drawn.std().item<double>() ==
        doctest::Approx(0.0666667).scale(0).epsilon(0.02));  // sqrt(2 / 450)
  CHECK(drawn.abs().max().item<double>() > 0.2);  // three deviations, which no uniform has
}

TEST_CASE("each bound and deviation is exactly what the sizes give") {
  const at::Tensor weight = at::empty({2, 3, 4, 5}), bias = at::empty({7});
  initialise_by_outputs(weight, at::detail::createCPUGenerator(3));
  initialise_by_inputs(bias, 9, at::detail::createCPUGenerator(3));
  CHECK(at::equal(
      weight,
      at::empty({2, 3, 4, 5}).normal_(0, std::sqrt(2 / 40.0), at::detail::createCPUGenerator(3))));
  CHECK(at::equal(bias,
                  at::empty({7}).uniform_(-1 / 3.0, 1 / 3.0, at::detail::createCPUGenerator(3))));
}

TEST_CASE("the same generator draws the same, another seed something else") {
  const at::Tensor first = at::empty({40}), second = at::empty({40}), other = at::empty({40});
  initialise_by_inputs(first, 4, at::detail::createCPUGenerator(3));
  initialise_by_inputs(second, 4, at::detail::createCPUGenerator(3));
  initialise_by_inputs(other, 4, at::detail::createCPUGenerator(4));
  CHECK(at::equal(first, second));
  CHECK_FALSE(at::equal(first, other));
}

}  // namespace scaletrain::nn
