// 1-bit quantization on the CPU: a block becomes two means and one bit for each value. Plain loops,
// as ATen's operators pass over the blocks many times and unpack bits one by one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace scaletrain::parallel {

constexpr std::size_t kOneBitBlock = 512;

// Encodes consecutive blocks of `values`; the last `padding[i]` values of block i are zeros that no
// mean counts. Writes for each block the mean of its values >= 0 and the mean of its negative
// values, and codes of eight values each, the first one in the lowest bit. A block with a value
// that is not finite gets a mean that is not finite.
void encode_one_bit(std::span<const float> values, std::span<const float> padding,
                    std::span<float> high_means, std::span<float> low_means,
                    std::span<std::uint8_t> codes);

// Replaces each bit by the mean that it stands for.
void decode_one_bit(std::span<const float> high_means, std::span<const float> low_means,
                    std::span<const std::uint8_t> codes, std::span<float> values);

}  // namespace scaletrain::parallel
