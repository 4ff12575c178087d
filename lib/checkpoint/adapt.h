// Weights for another image, as timm makes them fit.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>

namespace scaletrain::checkpoint {

// A convolution's kernel [out, channels, height, width] for images of `channels` channels: the sum
// over those that it has for one channel, otherwise all of them again and again, times how many
// there were over how many there are (timm's adapt_input_conv for 3 channels; the same for any).
at::Tensor adapt_channels(const at::Tensor& kernel, std::int64_t channels);

// The side of the square that `positions` positions without the first `first_tokens` are; nullopt
// where they are none.
std::optional<std::int64_t> side_of_positions(std::int64_t positions, std::int64_t first_tokens);

// A position embedding [1, first_tokens + old * old, dim] for side * side patches: the first tokens
// as they are, the others interpolated as an image, bicubic with antialiasing (timm's
// resample_abs_pos_embed). The patches are a square.
at::Tensor resample_positions(const at::Tensor& embedding, std::int64_t first_tokens,
                              std::int64_t side);

}  // namespace scaletrain::checkpoint
