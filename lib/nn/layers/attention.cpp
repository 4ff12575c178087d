#include "lib/nn/layers/attention.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include <optional>
#include <vector>

#include "lib/nn/layers/fused_attention.h"
#include "lib/units/cache.h"

namespace scaletrain::nn {
namespace {

// Every head as often as it takes to have `heads`, side by side.
at::Tensor repeat_heads(const at::Tensor& tensor, std::int64_t heads) {
  const std::int64_t times = heads / tensor.size(1);
  return times == 1 ? tensor : tensor.repeat_interleave(times, 1);
}

// Splits [batch, tokens, 3, heads, head_dim] into three of [batch, heads, tokens, head_dim].
// Backward writes the three gradients directly into the combined gradient; those of unbind() and
// permute() would be stacked and then transposed.
class SplitHeads : public torch::autograd::Function<SplitHeads> {
 public:
  static torch::autograd::variable_list forward(torch::autograd::AutogradContext* /*context*/,
                                                const at::Tensor& heads) {
    return heads.permute({2, 0, 3, 1, 4}).unbind();
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* /*context*/,
                                                 const torch::autograd::variable_list& gradients) {
    std::vector<at::Tensor> rows;
    for (const at::Tensor& one : gradients) rows.push_back(one.transpose(1, 2).flatten(2));
    const at::Tensor& first = gradients[0];
    return {at::cat(rows, 2).view({first.size(0), first.size(2), 3, first.size(1), first.size(3)})};
  }
};

}  // namespace

bool Attention::is_plain(const units::Context& context) const {
  return context.cache == nullptr && !context.sees.defined() && !context.attend &&
         (options_.dropout == 0 || !is_training());
}

at::Tensor Attention::forward(const at::Tensor& qkv, const units::Context& context) const {
  const std::int64_t batch = qkv.size(0), tokens = qkv.size(1);
  const at::Tensor heads = qkv.view({batch, tokens, 3, -1, options_.head_dim});
  const auto parts = SplitHeads::apply(heads);
  if (is_plain(context) && fused_attention_takes(parts[0], parts[1], parts[2])) {
    return fused_attention(heads, options_.causal).flatten(2);
  }
  return forward(parts[0], parts[1], parts[2], context);
}

at::Tensor Attention::forward(const at::Tensor& queries, const at::Tensor& keys,
                              const at::Tensor& values, const units::Context& context) const {
  if (context.attend) return context.attend(queries, keys, values).transpose(1, 2).flatten(2);
  if (is_plain(context) && fused_attention_takes(queries, keys, values)) {
    return fused_attention(queries, keys, values, options_.causal).flatten(2);
  }
  const std::int64_t heads = queries.size(1), tokens = queries.size(2);
  units::Cache::Held all{.keys = keys, .values = values};
  if (context.cache != nullptr) all = context.cache->extend(this, all);
  const std::int64_t before = all.keys.size(2) - tokens;
  std::optional<at::Tensor> sees;
  if (context.sees.defined()) sees = context.sees;
  if (options_.causal && before > 0 && tokens > 1) {  // otherwise one token sees all
    sees = at::ones({tokens, before + tokens}, queries.options().dtype(at::kBool)).tril(before);
  }
  const double dropout = is_training() ? options_.dropout : 0.0;
  const DrawsApart draws(dropout > 0 ? place() : std::nullopt, queries.device());
  const at::Tensor mixed = at::scaled_dot_product_attention(
      queries, repeat_heads(all.keys, heads), repeat_heads(all.values, heads), sees, dropout,
      options_.causal && !sees && before == 0);
  return mixed.transpose(1, 2).reshape({queries.size(0), tokens, -1});
}

}  // namespace scaletrain::nn
