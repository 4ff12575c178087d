#include "lib/format/weights/element_values.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "lib/core/error.h"

namespace scaletrain::format {
namespace {

template <class Element>
void widen(std::span<const std::byte> bytes, std::span<double> values) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    Element element{};
    std::memcpy(&element, bytes.data() + i * sizeof(Element), sizeof(Element));
    values[i] = static_cast<double>(element);
  }
}

template <class Element>
void narrow(std::span<const double> values, std::span<std::byte> bytes) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto element = static_cast<Element>(values[i]);
    std::memcpy(bytes.data() + i * sizeof(Element), &element, sizeof(Element));
  }
}

// A float of 16 bits: sign, exponent, fraction (IEEE 754: 5 and 10 bits; bfloat16: 8 and 7).
struct SmallFloat {
  int exponent_bits, fraction_bits;

  int bias() const { return (1 << (exponent_bits - 1)) - 1; }

  double widened(std::uint16_t bits) const {
    const double sign = (bits & 0x8000U) != 0 ? -1 : 1;
    const int exponent = (bits & 0x7fff) >> fraction_bits;
    const int fraction = bits & ((1 << fraction_bits) - 1);
    if (exponent == (1 << exponent_bits) - 1) {
      return fraction == 0 ? sign * std::numeric_limits<double>::infinity()
                           : std::numeric_limits<double>::quiet_NaN();
    }
    const int whole = exponent == 0 ? fraction : fraction + (1 << fraction_bits);
    return sign * std::ldexp(whole, (exponent == 0 ? 1 : exponent) - bias() - fraction_bits);
  }

  std::uint16_t narrowed(double value) const {
    const unsigned sign = std::signbit(value) ? 0x8000U : 0U;
    const unsigned infinite = ((1U << exponent_bits) - 1) << fraction_bits;
    if (std::isnan(value)) {
      return static_cast<std::uint16_t>(sign | infinite | 1U << (fraction_bits - 1));
    }
    if (std::isinf(value)) return static_cast<std::uint16_t>(sign | infinite);
    const double size = std::abs(value);
    const int lowest = 1 - bias();
    const int exponent = size == 0 ? lowest : std::max(std::ilogb(size), lowest);
    // Whole steps of the last bit; rounding up carries into the exponent in the sum below.
    const double steps = std::nearbyint(std::ldexp(size, fraction_bits - exponent));
    const unsigned above = static_cast<unsigned>(exponent - lowest) << fraction_bits;
    const unsigned bits = above + static_cast<unsigned>(steps);
    return static_cast<std::uint16_t>(sign | std::min(bits, infinite));
  }
};

constexpr SmallFloat kHalf{5, 10}, kBfloat16{8, 7};

void widen_small(SmallFloat kind, std::span<const std::byte> bytes, std::span<double> values) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    std::uint16_t bits = 0;
    std::memcpy(&bits, bytes.data() + i * sizeof bits, sizeof bits);
    values[i] = kind.widened(bits);
  }
}

void narrow_small(SmallFloat kind, std::span<const double> values, std::span<std::byte> bytes) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::uint16_t bits = kind.narrowed(values[i]);
    std::memcpy(bytes.data() + i * sizeof bits, &bits, sizeof bits);
  }
}

}  // namespace

bool is_floating(std::string_view dtype) {
  return dtype == "F64" || dtype == "F32" || dtype == "F16" || dtype == "BF16";
}

bool has_values(std::string_view dtype) {
  return is_floating(dtype) || dtype == "I64" || dtype == "I32" || dtype == "I16" ||
         dtype == "I8" || dtype == "U8" || dtype == "BOOL";
}

void read_values(std::string_view dtype, std::span<const std::byte> bytes,
                 std::span<double> values) {
  if (dtype == "F64") return widen<double>(bytes, values);
  if (dtype == "F32") return widen<float>(bytes, values);
  if (dtype == "F16") return widen_small(kHalf, bytes, values);
  if (dtype == "BF16") return widen_small(kBfloat16, bytes, values);
  if (dtype == "I64") return widen<std::int64_t>(bytes, values);
  if (dtype == "I32") return widen<std::int32_t>(bytes, values);
  if (dtype == "I16") return widen<std::int16_t>(bytes, values);
  if (dtype == "I8") return widen<std::int8_t>(bytes, values);
  if (dtype == "U8" || dtype == "BOOL") return widen<std::uint8_t>(bytes, values);
  throw core::InternalError("read_values", fmt::format("dtype {}", dtype));
}

void write_values(std::string_view dtype, std::span<const double> values,
                  std::span<std::byte> bytes) {
  if (dtype == "F64") return narrow<double>(values, bytes);
  if (dtype == "F32") return narrow<float>(values, bytes);
  if (dtype == "F16") return narrow_small(kHalf, values, bytes);
  if (dtype == "BF16") return narrow_small(kBfloat16, values, bytes);
  throw core::InternalError("write_values", fmt::format("dtype {}", dtype));
}

}  // namespace scaletrain::format
