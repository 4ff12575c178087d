#include "lib/format/weights/scaled_tensor.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "lib/format/weights/weight_cast.h"

using namespace scaletrain;          // NOLINT(google-build-using-namespace)
using namespace scaletrain::format;  // NOLINT(google-build-using-namespace)

namespace {

WeightTensor tensor_of(const std::string& dtype, std::vector<std::int64_t> shape,
                       std::int64_t element_bytes) {
  WeightTensor tensor{
      .name = dtype, .dtype = dtype, .shape = std::move(shape), .bytes = 0, .file = {}};
  tensor.bytes = element_bytes;
  for (const std::int64_t size : tensor.shape) tensor.bytes *= size;
  return tensor;
}

bool fit(std::vector<std::int64_t> values, std::vector<std::int64_t> scales) {
  return ScaledTensor::fits(tensor_of("I8", std::move(values), 1),
                            tensor_of("F32", std::move(scales), 4));
}

// Elements `begin` to `end` of whole numbers `values` by `scales`.
std::vector<float> scaled(const std::vector<std::int64_t>& shape,
                          const std::vector<std::int8_t>& values,
                          const std::vector<std::int64_t>& scale_shape,
                          const std::vector<float>& scales, std::int64_t begin, std::int64_t end) {
  const ScaledTensor tensor(tensor_of("I8", shape, 1), tensor_of("F32", scale_shape, 4));
  CHECK(tensor.described().dtype == "F32");
  CHECK(tensor.described().shape == shape);
  CHECK(tensor.described().bytes == static_cast<std::int64_t>(4 * values.size()));
  std::vector<float> out(static_cast<std::size_t>(end - begin));
  tensor.read(
      std::as_writable_bytes(std::span(out)), 4 * begin,
      [&](const WeightTensor& stored, std::span<std::byte> bytes, std::int64_t offset) {
        const void* const all = stored.dtype == "I8" ? static_cast<const void*>(values.data())
                                                     : static_cast<const void*>(scales.data());
        std::memcpy(bytes.data(), static_cast<const std::byte*>(all) + offset, bytes.size());
      });
  return out;
}

}  // namespace

TEST_CASE("scales have as many dimensions, and one for each index of one of them") {
  CHECK(fit({4, 3}, {4, 1}));
  CHECK(fit({4, 3}, {1, 3}));
  CHECK(fit({4, 3}, {1, 1}));
  CHECK(fit({4, 3, 2}, {1, 3, 1}));
  CHECK_FALSE(fit({4, 3}, {4}));
  CHECK_FALSE(fit({4, 3}, {3, 1}));
  CHECK_FALSE(fit({4, 3}, {4, 3}));
  CHECK_FALSE(fit({0, 3}, {0, 1}));
  CHECK_FALSE(ScaledTensor::fits(tensor_of("U8", {4, 3}, 1), tensor_of("F32", {4, 1}, 4)));
  CHECK_FALSE(ScaledTensor::fits(tensor_of("I8", {4, 3}, 1), tensor_of("I8", {4, 1}, 1)));
}

TEST_CASE("every element is multiplied by the scale of its index, from any element on") {
  const std::vector<std::int8_t> values{1, 2, 3, -127, 127, 0};
  using Floats = std::vector<float>;
  CHECK(scaled({2, 3}, values, {2, 1}, {0.5F, 2.0F}, 0, 6) == Floats{0.5F, 1, 1.5F, -254, 254, 0});
  CHECK(scaled({2, 3}, values, {1, 3}, {1, 10, 100}, 0, 6) == Floats{1, 20, 300, -127, 1270, 0});
  CHECK(scaled({2, 3}, values, {1, 1}, {2}, 0, 6) == Floats{2, 4, 6, -254, 254, 0});
  CHECK(scaled({1, 3, 2}, values, {1, 3, 1}, {1, 2, 4}, 0, 6) == Floats{1, 2, 6, -254, 508, 0});
  CHECK(scaled({2, 3}, values, {2, 1}, {0.5F, 2.0F}, 2, 5) == Floats{1.5F, -254, 254});
  CHECK(scaled({2, 3}, values, {1, 3}, {1, 10, 100}, 4, 6) == Floats{1270, 0});
}

TEST_CASE("what was quantised comes back within half of its scale") {
  const std::vector<float> weights{0.1F, -0.7F, 0.33F, 12, -8, 0.01F};
  OwnedTensor tensor{.name = "a.weight", .dtype = "F32", .shape = {2, 3}, .bytes = {}};
  const auto bytes = std::as_bytes(std::span(weights));
  tensor.bytes.assign(bytes.begin(), bytes.end());
  for (const std::size_t dim : {0, 1}) {
    const QuantisedTensor quantised = quantise_tensor(tensor, dim);
    std::vector<std::int8_t> values(6);
    std::memcpy(values.data(), quantised.values.bytes.data(), 6);
    std::vector<float> scales(dim == 0 ? 2 : 3);
    std::memcpy(scales.data(), quantised.scales.bytes.data(), quantised.scales.bytes.size());
    const std::vector<float> back = scaled({2, 3}, values, quantised.scales.shape, scales, 0, 6);
    for (std::size_t i = 0; i < weights.size(); ++i) {
      const float scale = scales[dim == 0 ? i / 3 : i % 3];
      CHECK(std::abs(back[i] - weights[i]) <= scale * 0.5001F);
    }
  }
}
