#include "lib/format/weights/element_values.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

using namespace scaletrain::format;  // NOLINT(google-build-using-namespace)

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

double value_of_bits(const std::string& dtype, std::uint64_t bits) {
  double value = 0;
  read_values(dtype, std::as_bytes(std::span(&bits, 1)), std::span(&value, 1));
  return value;
}

std::uint64_t bits_of(const std::string& dtype, double value) {
  std::uint64_t bits = 0;
  write_values(dtype, std::span(&value, 1), std::as_writable_bytes(std::span(&bits, 1)));
  return bits;
}

}  // namespace

TEST_CASE("elements are read as what they mean") {
  struct Case {
    std::string dtype;
    std::uint64_t bits;
    double value;
  };
  for (const auto& [dtype, bits, value] : std::vector<Case>{{"F64", 0x3ff8000000000000, 1.5},
                                                            {"F32", 0x3fc00000, 1.5},
                                                            {"F16", 0x3e00, 1.5},
                                                            {"F16", 0xc000, -2},
                                                            {"F16", 0x0001, std::ldexp(1, -24)},
                                                            {"F16", 0x03ff, std::ldexp(1023, -24)},
                                                            {"F16", 0x7bff, 65504},
                                                            {"F16", 0xfc00, -kInfinity},
                                                            {"BF16", 0x3fc0, 1.5},
                                                            {"BF16", 0x0001, std::ldexp(1, -133)},
                                                            {"BF16", 0x7f80, kInfinity},
                                                            {"I64", 0xffffffffffffffff, -1},
                                                            {"I32", 0xffffffff, -1},
                                                            {"I16", 0xfffe, -2},
                                                            {"I8", 0xff, -1},
                                                            {"U8", 0xff, 255},
                                                            {"BOOL", 1, 1}}) {
    CHECK(has_values(dtype));
    CHECK(value_of_bits(dtype, bits) == value);
    if (is_floating(dtype)) CHECK(bits_of(dtype, value) == bits);
  }
  CHECK(!has_values("F8_E4M3"));
  CHECK(!is_floating("I64"));
}

TEST_CASE("every float of 16 bits comes back as it was") {
  for (const std::string dtype : {"F16", "BF16"}) {
    int other = 0;
    for (std::uint64_t bits = 0; bits < 65536; ++bits) {
      const double value = value_of_bits(dtype, bits);
      other += std::isnan(value) || bits_of(dtype, value) == bits ? 0 : 1;
    }
    CHECK(other == 0);
    CHECK(std::isnan(value_of_bits(dtype, bits_of(dtype, std::nan("")))));
  }
}

TEST_CASE("values are rounded to the nearest element, ties to even") {
  CHECK(bits_of("F16", 1 + std::ldexp(1, -11)) == 0x3c00);  // half way: down to the even one
  CHECK(bits_of("F16", 1 + std::ldexp(3, -11)) == 0x3c02);  // half way: up to the even one
  CHECK(bits_of("F16", 1 + std::ldexp(1.01, -11)) == 0x3c01);
  CHECK(bits_of("F16", 1.9999) == 0x4000);  // carries into the exponent
  CHECK(bits_of("F16", 65519) == 0x7bff);
  CHECK(bits_of("F16", 65520) == 0x7c00);  // infinite
  CHECK(bits_of("F16", 1e300) == 0x7c00);
  CHECK(bits_of("F16", std::ldexp(1, -25)) == 0);
  CHECK(bits_of("F16", std::ldexp(1.5, -25)) == 1);
  CHECK(bits_of("F16", -0.0) == 0x8000);
  CHECK(bits_of("BF16", 1 + std::ldexp(1, -8)) == 0x3f80);
  CHECK(bits_of("BF16", 1 + std::ldexp(3, -8)) == 0x3f82);
  CHECK(bits_of("BF16", 3.4e38) == 0x7f80);
}
