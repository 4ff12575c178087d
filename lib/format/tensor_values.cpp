#include "lib/format/tensor_values.h"

#include <algorithm>
#include <cstring>

namespace scaletrain::format {
namespace {

// NaN and infinities have all exponent bits set; only an infinity has no fraction bits.
template <class Word>
bool is_wrong(Word word, Word exponent, NotFinite what) {
  if ((word & exponent) != exponent) return false;
  const auto below = static_cast<Word>(word & ((exponent & -exponent) - 1));
  return what == NotFinite::kNanOrInfinite || below != 0;
}

template <class Word>
std::optional<std::int64_t> scan(std::span<const std::byte> bytes, Word exponent, NotFinite what) {
  const auto word_at = [&](std::size_t index) {
    Word word = 0;
    std::memcpy(&word, bytes.data() + index * sizeof(Word), sizeof(Word));
    return word;
  };
  constexpr std::size_t kBlock = 4096;  // without a way out in the middle it is vector code
  const std::size_t count = bytes.size() / sizeof(Word);
  for (std::size_t begin = 0; begin < count; begin += kBlock) {
    const std::size_t end = std::min(begin + kBlock, count);
    bool any = false;
    for (std::size_t index = begin; index < end; ++index) {
      any |= (word_at(index) & exponent) == exponent;
    }
    for (std::size_t index = begin; any && index < end; ++index) {
      if (is_wrong(word_at(index), exponent, what)) return static_cast<std::int64_t>(index);
    }
  }
  return std::nullopt;
}

template <class Value>
double value_of(std::span<const std::byte> bytes) {
  Value value{};
  std::memcpy(&value, bytes.data(), sizeof value);
  return static_cast<double>(value);
}

}  // namespace

std::optional<std::int64_t> find_not_finite(std::string_view dtype,
                                            std::span<const std::byte> bytes, NotFinite what) {
  if (dtype == "F32") return scan<std::uint32_t>(bytes, 0x7f800000, what);
  if (dtype == "F64") return scan<std::uint64_t>(bytes, 0x7ff0000000000000, what);
  if (dtype == "BF16") return scan<std::uint16_t>(bytes, 0x7f80, what);
  if (dtype == "F16") return scan<std::uint16_t>(bytes, 0x7c00, what);
  if (dtype == "C64") {  // two of F32
    const auto part = scan<std::uint32_t>(bytes, 0x7f800000, what);
    return part ? std::optional(*part / 2) : std::nullopt;
  }
  return std::nullopt;
}

std::optional<double> scalar_value(std::string_view dtype, std::span<const std::byte> bytes) {
  if (dtype == "F32" && bytes.size() == sizeof(float)) return value_of<float>(bytes);
  if (dtype == "F64" && bytes.size() == sizeof(double)) return value_of<double>(bytes);
  if (dtype == "I64" && bytes.size() == sizeof(std::int64_t)) return value_of<std::int64_t>(bytes);
  return std::nullopt;
}

}  // namespace scaletrain::format
