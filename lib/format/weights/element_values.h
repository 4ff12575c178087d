// Elements of tensors as doubles and back, without LibTorch.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace scaletrain::format {

// True if the elements of `dtype` can be read as doubles: F64, F32, F16, BF16, I64 (as near as a
// double is), I32, I16, I8, U8, BOOL.
bool has_values(std::string_view dtype);

// True if `dtype` is F64, F32, F16 or BF16, which can be written too.
bool is_floating(std::string_view dtype);

// The values of `bytes`, which hold `values.size()` elements of a dtype that has_values.
void read_values(std::string_view dtype, std::span<const std::byte> bytes,
                 std::span<double> values);

// Rounds to the nearest element of a dtype that is_floating, ties to even; what is too large
// becomes infinite.
void write_values(std::string_view dtype, std::span<const double> values,
                  std::span<std::byte> bytes);

}  // namespace scaletrain::format
