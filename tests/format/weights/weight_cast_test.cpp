#include "lib/format/weights/weight_cast.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <span>

#include "lib/core/error.h"

using namespace scaletrain;          // NOLINT(google-build-using-namespace)
using namespace scaletrain::format;  // NOLINT(google-build-using-namespace)

namespace {

template <class Value>
OwnedTensor owned(const std::string& name, const std::string& dtype,
                  const std::vector<std::int64_t>& shape, const std::vector<Value>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  return {.name = name, .dtype = dtype, .shape = shape, .bytes = {bytes.begin(), bytes.end()}};
}

template <class Value>
std::vector<Value> values_in(const OwnedTensor& tensor) {
  std::vector<Value> values(tensor.bytes.size() / sizeof(Value));
  std::memcpy(values.data(), tensor.bytes.data(), tensor.bytes.size());
  return values;
}

}  // namespace

TEST_CASE("floating tensors are rounded, others stay") {
  const OwnedTensor tensor = owned<float>("w", "F32", {2}, {1, 1 + 1.0F / 512});
  const OwnedTensor half = cast_tensor(tensor, "F16");
  CHECK(half.dtype == "F16");
  CHECK(values_in<std::uint16_t>(half) == std::vector<std::uint16_t>{0x3c00, 0x3c02});
  CHECK(values_in<std::uint16_t>(cast_tensor(tensor, "BF16")) ==  // 1/512 is half of the last bit
        std::vector<std::uint16_t>{0x3f80, 0x3f80});
  CHECK(values_in<float>(cast_tensor(half, "F32")) == values_in<float>(tensor));
  const OwnedTensor count = owned<std::int64_t>("n", "I64", {1}, {7});
  CHECK(values_in<std::int64_t>(cast_tensor(count, "F16")) == std::vector<std::int64_t>{7});
}

TEST_CASE("a value that the type does not reach is refused, one that is infinite is not") {
  std::string found;
  try {
    cast_tensor(owned<float>("w", "F32", {2}, {1, 70000}), "F16");
  } catch (const core::CheckpointError& error) {
    found = error.place() + " " + error.found();
  }
  CHECK(found == "w has the value 7e+04, which is outside the range of F16");
  CHECK_NOTHROW(
      cast_tensor(owned<float>("w", "F32", {1}, {std::numeric_limits<float>::infinity()}), "F16"));
  CHECK_NOTHROW(cast_tensor(owned<float>("w", "F32", {1}, {70000}), "BF16"));
}

TEST_CASE("weights of two dimensions become whole numbers, nothing else does") {
  CHECK(is_quantised(owned<float>("a.weight", "F32", {1, 1}, {1})));
  CHECK(!is_quantised(owned<float>("norm.weight", "F32", {1}, {1})));
  CHECK(!is_quantised(owned<float>("pos_embed", "F32", {1, 1}, {1})));
  CHECK(!is_quantised(owned<std::int64_t>("a.weight", "I64", {1, 1}, {1})));
}

TEST_CASE("each output has a scale by which its largest weight is 127") {
  const OwnedTensor weights =
      owned<float>("w", "F32", {2, 3}, {1.27F, -0.635F, 0.003F, -254, 3, -1});
  const QuantisedTensor rows = quantise_tensor(weights, 0);
  CHECK(rows.values.name == "w");
  CHECK(rows.values.dtype == "I8");
  CHECK(rows.values.shape == weights.shape);
  CHECK(rows.scales.name == "w_scale");
  CHECK(rows.scales.dtype == "F32");
  CHECK(rows.scales.shape == std::vector<std::int64_t>{2, 1});
  CHECK(values_in<float>(rows.scales)[0] == doctest::Approx(0.01));  // 1.27 / 127
  CHECK(values_in<float>(rows.scales)[1] == 2);                      // 254 / 127
  const auto numbers = values_in<std::int8_t>(rows.values);
  CHECK(numbers[0] == 127);
  CHECK((numbers[1] == -64 || numbers[1] == -63));  // -63.5 but for the rounding of 0.01
  CHECK(numbers[2] == 0);
  CHECK(numbers[3] == -127);
  CHECK(numbers[4] == 2);  // 1.5, to even
  CHECK(numbers[5] == 0);  // -0.5, to even

  const QuantisedTensor columns = quantise_tensor(weights, 1);
  CHECK(columns.scales.shape == std::vector<std::int64_t>{1, 3});
  CHECK(values_in<float>(columns.scales)[0] == 2);
  CHECK(values_in<std::int8_t>(columns.values)[3] == -127);
}

TEST_CASE("an output without any weight but zero stays zero, and an empty tensor empty") {
  const QuantisedTensor zeros = quantise_tensor(owned<float>("w", "F32", {1, 2}, {0, 0}), 0);
  CHECK(values_in<float>(zeros.scales) == std::vector<float>{0});
  CHECK(values_in<std::int8_t>(zeros.values) == std::vector<std::int8_t>{0, 0});
  const QuantisedTensor empty = quantise_tensor(owned<float>("w", "F32", {2, 0}, {}), 0);
  CHECK(empty.values.bytes.empty());
  CHECK(values_in<float>(empty.scales) == std::vector<float>{0, 0});
}
