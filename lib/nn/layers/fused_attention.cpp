#include "lib/nn/layers/fused_attention.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include <array>
#include <cmath>
#include <vector>

#include "lib/nn/kernels/attention.h"
#include "lib/nn/kernels/takes.h"
#include "lib/units/parallel.h"

namespace scaletrain::nn {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr std::int64_t kMostTokens = 1024;  // beyond, a block of scores leaves the cache
constexpr std::int64_t kMostHeadDim = 256;

// Queries, keys and values, each [batch, tokens, heads, head_dim] with numbers of a head side by
// side.
using Parts = std::array<Tensor, 3>;
enum Part : std::size_t { kQueries, kKeys, kValues };

kernels::AttentionShape shape_of(const Parts& parts, bool causal) {
  const Tensor& queries = parts[kQueries];
  return {.tokens = queries.size(1),
          .head_dim = queries.size(3),
          .causal = causal,
          .scale = static_cast<float>(1 / std::sqrt(static_cast<double>(queries.size(3))))};
}

kernels::ConstRows head_of(const Tensor& part, std::int64_t batch, std::int64_t head) {
  return {part.const_data_ptr<float>() + batch * part.stride(0) + head * part.stride(2),
          part.stride(1)};
}

kernels::Rows out_of(const Tensor& part, std::int64_t batch, std::int64_t head) {
  return {part.mutable_data_ptr<float>() + batch * part.stride(0) + head * part.stride(2),
          part.stride(1)};
}

float* row_of(const Tensor& sums, std::int64_t batch, std::int64_t head) {
  return sums.mutable_data_ptr<float>() + (batch * sums.size(1) + head) * sums.size(2);
}

// Calls body(batch, key_head, scratch) for each head of keys, on all threads.
template <typename Body>
void for_each_head(const Parts& parts, const kernels::AttentionShape& shape, const Body& body) {
  const std::int64_t heads = parts[kKeys].size(2);
  units::parallel_for(
      0, parts[kKeys].size(0) * heads, 1, [&](std::int64_t begin, std::int64_t end) {
        std::vector<float> scratch(static_cast<std::size_t>(kernels::attention_scratch(shape)));
        for (std::int64_t i = begin; i < end; ++i) body(i / heads, i % heads, scratch.data());
      });
}

struct Mixed {
  Tensor output;  // [batch, tokens, heads, head_dim]
  Tensor sums;    // [batch, heads, tokens]
};

Mixed mix(const Parts& parts, bool causal) {
  const Tensor& queries = parts[kQueries];
  const kernels::AttentionShape shape = shape_of(parts, causal);
  const std::int64_t heads = queries.size(2), served = heads / parts[kKeys].size(2);
  Mixed result{.output = at::empty({queries.size(0), shape.tokens, heads, shape.head_dim},
                                   queries.options()),
               .sums = at::empty({queries.size(0), heads, shape.tokens}, queries.options())};
  for_each_head(parts, shape, [&](std::int64_t batch, std::int64_t key_head, float* scratch) {
    for (std::int64_t head = key_head * served; head < (key_head + 1) * served; ++head) {
      kernels::attention(
          shape, head_of(queries, batch, head), head_of(parts[kKeys], batch, key_head),
          head_of(parts[kValues], batch, key_head), out_of(result.output, batch, head),
          row_of(result.sums, batch, head), scratch);
    }
  });
  return result;
}

// Fills `result`, of which keys and values are zeros.
void mix_backward(const Parts& parts, const Mixed& mixed, bool causal, const Tensor& gradient,
                  const Parts& result) {
  const kernels::AttentionShape shape = shape_of(parts, causal);
  const std::int64_t served = parts[kQueries].size(2) / parts[kKeys].size(2);
  for_each_head(parts, shape, [&](std::int64_t batch, std::int64_t key_head, float* scratch) {
    for (std::int64_t head = key_head * served; head < (key_head + 1) * served; ++head) {
      kernels::attention_backward(
          shape, head_of(parts[kQueries], batch, head), head_of(parts[kKeys], batch, key_head),
          head_of(parts[kValues], batch, key_head), head_of(mixed.output, batch, head),
          row_of(mixed.sums, batch, head), head_of(gradient, batch, head),
          {.queries = out_of(result[kQueries], batch, head),
           .keys = out_of(result[kKeys], batch, key_head),
           .values = out_of(result[kValues], batch, key_head)},
          scratch);
    }
  });
}

Parts parts_of(const Tensor& qkv) { return {qkv.select(2, 0), qkv.select(2, 1), qkv.select(2, 2)}; }

Mixed kept(AutogradContext* context, std::size_t first) {
  const variable_list saved = context->get_saved_variables();
  return {.output = saved[first], .sums = saved[first + 1]};
}

class PackedAttention : public torch::autograd::Function<PackedAttention> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& qkv, bool causal) {
    const Mixed mixed = mix(parts_of(qkv), causal);
    context->save_for_backward({qkv, mixed.output, mixed.sums});
    context->saved_data["causal"] = causal;
    return mixed.output;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const Tensor qkv = context->get_saved_variables()[0];
    const Tensor result = at::zeros(qkv.sizes(), qkv.options());
    mix_backward(parts_of(qkv), kept(context, 1), context->saved_data["causal"].toBool(),
                 gradients[0].contiguous(), parts_of(result));
    return {result, Tensor()};
  }
};

class SplitAttention : public torch::autograd::Function<SplitAttention> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& queries, const Tensor& keys,
                        const Tensor& values, bool causal) {
    const Mixed mixed = mix({queries, keys, values}, causal);
    context->save_for_backward({queries, keys, values, mixed.output, mixed.sums});
    context->saved_data["causal"] = causal;
    return mixed.output;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const Parts parts{saved[kQueries], saved[kKeys], saved[kValues]};
    const auto zeros = [](const Tensor& like) { return at::zeros(like.sizes(), like.options()); };
    const Parts result{zeros(parts[kQueries]), zeros(parts[kKeys]), zeros(parts[kValues])};
    mix_backward(parts, kept(context, parts.size()), context->saved_data["causal"].toBool(),
                 gradients[0].contiguous(), result);
    return {result[kQueries], result[kKeys], result[kValues], Tensor()};
  }
};

}  // namespace

bool fused_attention_takes(const Tensor& queries, const Tensor& keys, const Tensor& values) {
  for (const Tensor* const part : {&queries, &keys, &values}) {
    if (!kernels::takes(*part) || part->stride(3) != 1) return false;
  }
  const std::int64_t tokens = queries.size(2), head_dim = queries.size(3);
  return tokens == keys.size(2) && tokens > 0 && tokens <= kMostTokens &&
         head_dim <= kMostHeadDim && head_dim % kernels::kHeadDimStep == 0 &&
         values.size(3) == head_dim;
}

Tensor fused_attention(const Tensor& queries, const Tensor& keys, const Tensor& values,
                       bool causal) {
  return SplitAttention::apply(queries.transpose(1, 2), keys.transpose(1, 2),
                               values.transpose(1, 2), causal);
}

Tensor fused_attention(const Tensor& qkv, bool causal) {
  return PackedAttention::apply(qkv, causal);
}

}  // namespace scaletrain::nn
