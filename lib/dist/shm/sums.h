// Combines several ranks' values elementwise.
#pragma once

#include <c10/core/ScalarType.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <torch/csrc/distributed/c10d/Types.hpp>

namespace scaletrain::dist {

// True if combine() supports it: SUM, AVG (floating-point), MAX and MIN of fp64, fp32, bf16, fp16,
// signed and unsigned bytes, int16, int32, int64 and bool (for which a sum is "or").
bool can_combine(c10::ScalarType type, c10d::ReduceOp::RedOpType operation);

// out[i] = ((parts[0][i] + parts[1][i]) + parts[2][i]) + ... for `count` elements, always in the
// order of the parts, so that results are bitwise reproducible. bf16 and fp16 are summed in fp32
// and rounded once. `out` may be one of the parts.
void combine(c10::ScalarType type, c10d::ReduceOp::RedOpType operation,
             std::span<const std::byte* const> parts, std::byte* out, std::size_t count);

}  // namespace scaletrain::dist
