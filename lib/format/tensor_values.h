// Values of tensors as they lie in files, as far as they are looked at without LibTorch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace scaletrain::format {

enum class NotFinite { kNan, kNanOrInfinite };

// The number of the first element that is not a number, or is infinite where `what` asks for that
// too; nullopt where there is none, and for dtypes that are not F16, BF16, F32, F64 or C64.
std::optional<std::int64_t> find_not_finite(std::string_view dtype,
                                            std::span<const std::byte> bytes, NotFinite what);

// The value of one element of dtype F32, F64 or I64; nullopt for any other.
std::optional<double> scalar_value(std::string_view dtype, std::span<const std::byte> bytes);

}  // namespace scaletrain::format
