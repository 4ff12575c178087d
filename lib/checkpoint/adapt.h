// Adapts pretrained weights to another number of image channels or another image size, as timm
// does.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>

namespace scaletrain::checkpoint {

// Adapts a convolution kernel [out, channels, height, width] to images of `channels` channels, as
// timm's adapt_input_conv does for 3. For one channel the channels are summed; otherwise they are
// repeated cyclically and scaled by old channels / new channels.
at::Tensor adapt_channels(const at::Tensor& kernel, std::int64_t channels);

// Returns the side of the square grid of `positions` position embeddings without the first
// `first_tokens`; nullopt if they form no square.
std::optional<std::int64_t> side_of_positions(std::int64_t positions, std::int64_t first_tokens);

// Resamples a position embedding [1, first_tokens + old * old, dim] to side * side patches, as
// timm's resample_abs_pos_embed does: bicubic with antialiasing. The first tokens are kept. The old
// patches must form a square.
at::Tensor resample_positions(const at::Tensor& embedding, std::int64_t first_tokens,
                              std::int64_t side);

}  // namespace scaletrain::checkpoint
