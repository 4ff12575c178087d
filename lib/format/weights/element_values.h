// Converts tensor elements to doubles and back, without LibTorch.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace scaletrain::format {

// True if elements of `dtype` can be read as doubles: F64, F32, F16, BF16, I64 (rounded to the
// nearest double), I32, I16, I8, U8, BOOL.
bool has_values(std::string_view dtype);

// True if `dtype` is F64, F32, F16 or BF16, which can be written too.
bool is_floating(std::string_view dtype);

// Reads `values.size()` elements of a dtype for which has_values() is true.
void read_values(std::string_view dtype, std::span<const std::byte> bytes,
                 std::span<double> values);

// Rounds to the nearest value of a floating-point dtype, ties to even; larger values become
// infinite.
void write_values(std::string_view dtype, std::span<const double> values,
                  std::span<std::byte> bytes);

}  // namespace scaletrain::format
