#include "lib/nn/layers/attention.h"

#include <ATen/ATen.h>

namespace scaletrain::nn {

at::Tensor Attention::forward(const at::Tensor& qkv) const {
  const std::int64_t batch = qkv.size(0), tokens = qkv.size(1);
  const at::Tensor parts = qkv.view({batch, tokens, 3, -1, options_.head_dim})
                               .permute({2, 0, 3, 1, 4});  // [3, batch, heads, tokens, head_dim]
  const at::Tensor mixed = at::scaled_dot_product_attention(
      parts[0], parts[1], parts[2], {}, is_training() ? options_.dropout : 0.0, options_.causal);
  return mixed.transpose(1, 2).reshape({batch, tokens, -1});
}

}  // namespace scaletrain::nn
