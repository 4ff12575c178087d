#include "lib/checkpoint/adapt.h"

#include <ATen/ATen.h>

#include <cmath>

namespace scaletrain::checkpoint {

at::Tensor adapt_channels(const at::Tensor& kernel, std::int64_t channels) {
  const std::int64_t had = kernel.size(1);
  if (channels == 1) return kernel.sum(1, /*keepdim=*/true);
  const std::int64_t times = (channels + had - 1) / had;
  return kernel.repeat({1, times, 1, 1}).narrow(1, 0, channels) *
         (static_cast<double>(had) / static_cast<double>(channels));
}

std::optional<std::int64_t> side_of_positions(std::int64_t positions, std::int64_t first_tokens) {
  const std::int64_t patches = positions - first_tokens;
  if (patches < 1) return std::nullopt;
  const std::int64_t side = std::llround(std::sqrt(static_cast<double>(patches)));
  return side * side == patches ? std::make_optional(side) : std::nullopt;
}

at::Tensor resample_positions(const at::Tensor& embedding, std::int64_t first_tokens,
                              std::int64_t side) {
  const std::int64_t patches = embedding.size(1) - first_tokens, dim = embedding.size(2);
  const std::int64_t old = *side_of_positions(embedding.size(1), first_tokens);
  const at::Tensor grid =
      embedding.narrow(1, first_tokens, patches).reshape({1, old, old, dim}).permute({0, 3, 1, 2});
  const at::Tensor resized = at::_upsample_bicubic2d_aa(grid, {side, side}, /*align_corners=*/false)
                                 .permute({0, 2, 3, 1})
                                 .reshape({1, side * side, dim});
  return at::cat({embedding.narrow(1, 0, first_tokens), resized}, 1);
}

}  // namespace scaletrain::checkpoint
