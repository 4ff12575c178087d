// Examines tensor values in files without LibTorch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace scaletrain::format {

enum class NotFinite { kNan, kNanOrInfinite };

// Returns the index of the first NaN, or infinity if `what` includes them; nullopt if there is
// none, and for dtypes other than F16, BF16, F32, F64 and C64.
std::optional<std::int64_t> find_not_finite(std::string_view dtype,
                                            std::span<const std::byte> bytes, NotFinite what);

// Returns the value of one F32, F64 or I64 element; nullopt for other dtypes.
std::optional<double> scalar_value(std::string_view dtype, std::span<const std::byte> bytes);

}  // namespace scaletrain::format
