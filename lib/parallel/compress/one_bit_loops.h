// Blocks of numbers as two means and a bit for each number, by the host's loops: ATen's operators
// pass over the blocks many times and unpack bits one by one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace scaletrain::parallel {

constexpr std::size_t kOneBitBlock = 512;

// `values`, blocks one behind the other, the last `padding[i]` of block i zeros that no mean
// counts, to the blocks' means of the numbers that are not negative and of the others, and to codes
// of eight numbers each, the first in the lowest bit. A block that has something not finite has a
// mean so.
void encode_one_bit(std::span<const float> values, std::span<const float> padding,
                    std::span<float> high_means, std::span<float> low_means,
                    std::span<std::uint8_t> codes);

// What the bits stand for.
void decode_one_bit(std::span<const float> high_means, std::span<const float> low_means,
                    std::span<const std::uint8_t> codes, std::span<float> values);

}  // namespace scaletrain::parallel
