#include "lib/format/tensor_values.h"

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <limits>
#include <vector>

using namespace scaletrain::format;  // NOLINT(google-build-using-namespace)

namespace {

template <class Value>
std::optional<std::int64_t> not_finite(const char* dtype, const std::vector<Value>& values,
                                       NotFinite what = NotFinite::kNanOrInfinite) {
  return find_not_finite(dtype, std::as_bytes(std::span(values)), what);
}

}  // namespace

TEST_CASE("the first element that is not finite is found, of any floating-point dtype") {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  constexpr float kInfinite = std::numeric_limits<float>::infinity();
  constexpr float kMost = std::numeric_limits<float>::max();
  CHECK(not_finite<float>("F32", {0, -1, kMost, 1e-45F}) == std::nullopt);
  CHECK(not_finite<float>("F32", {0, -kNan, kNan}) == 1);
  CHECK(not_finite<float>("F32", {0, 1, -kInfinite}) == 2);
  CHECK(not_finite<float>("F32", {0, kInfinite, kNan}, NotFinite::kNan) == 2);
  CHECK(not_finite<float>("F32", {0, kInfinite}, NotFinite::kNan) == std::nullopt);
  CHECK(not_finite<double>("F64", {1e308, std::nan("")}) == 1);
  CHECK(not_finite<float>("C64", {0, 0, 0, kNan}) == 1);
  // BF16 is the upper half of F32; F16 has 5 bits of exponent.
  CHECK(not_finite<std::uint16_t>("BF16", {0x7f7f, 0xff80}) == 1);
  CHECK(not_finite<std::uint16_t>("BF16", {0xff80, 0x7f81}, NotFinite::kNan) == 1);
  CHECK(not_finite<std::uint16_t>("F16", {0x7bff, 0x7c00}) == 1);
  CHECK(not_finite<std::uint16_t>("F16", {0xfc00, 0xfe00}, NotFinite::kNan) == 1);
  CHECK(not_finite<std::int64_t>("I64", {-1}) == std::nullopt);

  std::vector<float> many(10'000, 1);  // more than one block
  CHECK(not_finite("F32", many) == std::nullopt);
  many.back() = kNan;
  CHECK(not_finite("F32", many) == 9'999);
}

TEST_CASE("one element is read as a number") {
  const float thirty = 30.5;
  const double half = 0.5;
  const std::int64_t minus = -3;
  CHECK(scalar_value("F32", std::as_bytes(std::span(&thirty, 1))) == 30.5);
  CHECK(scalar_value("F64", std::as_bytes(std::span(&half, 1))) == 0.5);
  CHECK(scalar_value("I64", std::as_bytes(std::span(&minus, 1))) == -3);
  CHECK(scalar_value("F32", std::as_bytes(std::span(&half, 1))) == std::nullopt);
  CHECK(scalar_value("U8", std::as_bytes(std::span(&half, 1))) == std::nullopt);
}
