#include "lib/dist/shm/sums.h"

#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>

#include <algorithm>
#include <array>
#include <type_traits>

#include "lib/core/error.h"

namespace scaletrain::dist {
namespace {

using Operation = c10d::ReduceOp::RedOpType;
using Parts = std::span<const std::byte* const>;

#define SCALETRAIN_INLINE inline __attribute__((always_inline))

template <class Number>
constexpr bool kIsFloating =
    std::is_floating_point_v<Number> || std::is_same_v<Number, c10::BFloat16> ||
    std::is_same_v<Number, c10::Half>;

// Number type in which values of a dtype are added.
template <class Number>
using Wide =
    std::conditional_t<std::is_same_v<Number, c10::BFloat16> || std::is_same_v<Number, c10::Half>,
                       float, Number>;

template <class Number>
SCALETRAIN_INLINE bool is_nan(Number value) {
  if constexpr (std::is_floating_point_v<Number>) return __builtin_isnan(value) != 0;
  return false;
}

template <Operation kOperation, class Number>
SCALETRAIN_INLINE Number join(Number a, Number b) {
  if constexpr (kOperation == Operation::MAX) {
    return b > a || is_nan(b) ? b : a;  // NaN stays
  } else if constexpr (kOperation == Operation::MIN) {
    return b < a || is_nan(b) ? b : a;
  } else if constexpr (std::is_same_v<Number, bool>) {
    return a || b;
  } else if constexpr (std::is_integral_v<Number>) {
    using Unsigned = std::make_unsigned_t<Number>;  // unsigned overflow is defined
    return static_cast<Number>(static_cast<Unsigned>(a) + static_cast<Unsigned>(b));
  } else {
    return a + b;
  }
}

template <Operation kOperation, class Number>
SCALETRAIN_INLINE void combine_two(const Number* a, const Number* b, Number* out,
                                   std::size_t count) {
  using Sum = Wide<Number>;
  for (std::size_t i = 0; i < count; ++i) {
    out[i] =
        static_cast<Number>(join<kOperation, Sum>(static_cast<Sum>(a[i]), static_cast<Sum>(b[i])));
  }
}

constexpr std::size_t kBlockNumbers = 512;  // they fit into the L1 cache

template <Operation kOperation, class Number>
SCALETRAIN_INLINE void combine_block(Parts parts, std::size_t begin, Number* out,
                                     std::size_t count) {
  using Sum = Wide<Number>;
  std::array<Sum, kBlockNumbers> sums;  // NOLINT(cppcoreguidelines-pro-type-member-init)
  const auto* const first = reinterpret_cast<const Number*>(parts[0]) + begin;
  for (std::size_t i = 0; i < count; ++i) sums[i] = static_cast<Sum>(first[i]);
  for (const std::byte* const part : parts.subspan(1)) {
    const auto* const values = reinterpret_cast<const Number*>(part) + begin;
    for (std::size_t i = 0; i < count; ++i) {
      sums[i] = join<kOperation, Sum>(sums[i], static_cast<Sum>(values[i]));
    }
  }
  if constexpr (kOperation == Operation::AVG) {
    const auto ranks = static_cast<Sum>(parts.size());
    for (std::size_t i = 0; i < count; ++i) sums[i] = sums[i] / ranks;
  }
  for (std::size_t i = 0; i < count; ++i) out[begin + i] = static_cast<Number>(sums[i]);
}

template <Operation kOperation, class Number>
SCALETRAIN_INLINE void combine_all(Parts parts, std::byte* to, std::size_t count) {
  auto* const out = reinterpret_cast<Number*>(to);
  if (parts.size() == 2 && kOperation != Operation::AVG) {
    combine_two<kOperation>(reinterpret_cast<const Number*>(parts[0]),
                            reinterpret_cast<const Number*>(parts[1]), out, count);
    return;
  }
  for (std::size_t begin = 0; begin < count; begin += kBlockNumbers) {
    combine_block<kOperation, Number>(parts, begin, out, std::min(kBlockNumbers, count - begin));
  }
}

template <class Number>
SCALETRAIN_INLINE void combine_by(Operation operation, Parts parts, std::byte* to,
                                  std::size_t count) {
  if (operation == Operation::SUM) return combine_all<Operation::SUM, Number>(parts, to, count);
  if (operation == Operation::MAX) return combine_all<Operation::MAX, Number>(parts, to, count);
  if (operation == Operation::MIN) return combine_all<Operation::MIN, Number>(parts, to, count);
  if constexpr (kIsFloating<Number>) combine_all<Operation::AVG, Number>(parts, to, count);
}

#if defined(__x86_64__)
__attribute__((target("avx2"))) void wide_combine_floats(Operation operation, Parts parts,
                                                         std::byte* to, std::size_t count) {
  combine_by<float>(operation, parts, to, count);
}
__attribute__((target("avx2"))) void wide_combine_bfloats(Operation operation, Parts parts,
                                                          std::byte* to, std::size_t count) {
  combine_by<c10::BFloat16>(operation, parts, to, count);
}
bool is_wide() { return __builtin_cpu_supports("avx2") != 0; }
#else
constexpr bool is_wide() { return false; }
constexpr auto wide_combine_floats = combine_by<float>;
constexpr auto wide_combine_bfloats = combine_by<c10::BFloat16>;
#endif

using Combine = void (*)(Operation, Parts, std::byte*, std::size_t);

template <class Number>
void plain_combine(Operation operation, Parts parts, std::byte* to, std::size_t count) {
  combine_by<Number>(operation, parts, to, count);
}

// nullptr: nobody adds these.
Combine combine_of(c10::ScalarType type) {
  const bool wide = is_wide();
  switch (type) {
    case c10::ScalarType::Float:
      return wide ? wide_combine_floats : plain_combine<float>;
    case c10::ScalarType::BFloat16:
      return wide ? wide_combine_bfloats : plain_combine<c10::BFloat16>;
    case c10::ScalarType::Double:
      return plain_combine<double>;
    case c10::ScalarType::Half:
      return plain_combine<c10::Half>;
    case c10::ScalarType::Char:
      return plain_combine<std::int8_t>;
    case c10::ScalarType::Byte:
      return plain_combine<std::uint8_t>;
    case c10::ScalarType::Short:
      return plain_combine<std::int16_t>;
    case c10::ScalarType::Int:
      return plain_combine<std::int32_t>;
    case c10::ScalarType::Long:
      return plain_combine<std::int64_t>;
    case c10::ScalarType::Bool:
      return plain_combine<bool>;
    default:
      return nullptr;
  }
}

}  // namespace

bool can_combine(c10::ScalarType type, Operation operation) {
  if (combine_of(type) == nullptr) return false;
  if (operation == Operation::AVG) return c10::isFloatingType(type);
  return operation == Operation::SUM || operation == Operation::MAX || operation == Operation::MIN;
}

void combine(c10::ScalarType type, Operation operation, Parts parts, std::byte* out,
             std::size_t count) {
  if (!can_combine(type, operation)) throw core::InternalError("combine", "not of these numbers");
  combine_of(type)(operation, parts, out, count);
}

}  // namespace scaletrain::dist
