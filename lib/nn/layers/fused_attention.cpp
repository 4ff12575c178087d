#include "lib/nn/layers/fused_attention.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>
#include <vector>

#include "lib/nn/kernels/attention.h"
#include "lib/nn/kernels/convert_bf16.h"
#include "lib/nn/kernels/takes.h"
#include "lib/units/flops.h"
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

units::AttentionSize flop_size_of(const Tensor& queries, bool causal) {
  const auto tokens = static_cast<double>(queries.size(1));
  const auto head_dim = static_cast<double>(queries.size(3));
  return {.heads = static_cast<double>(queries.size(0) * queries.size(2)),
          .queries = tokens,
          .keys = tokens,
          .head_dim = head_dim,
          .value_dim = head_dim,
          .causal = causal};
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

// Scratch memory, piece by piece.
class Room {
 public:
  explicit Room(float* begin) : next_(begin) {}
  float* take(std::int64_t count) { return std::exchange(next_, next_ + count); }

 private:
  float* next_;
};

const kernels::Bf16* bf16_of(const Tensor& part, std::int64_t batch, std::int64_t head) {
  return static_cast<const kernels::Bf16*>(part.const_data_ptr()) + batch * part.stride(0) +
         head * part.stride(2);
}

// One head as floats: its own memory, or a converted copy for bf16.
kernels::ConstRows floats_of(const Tensor& part, std::int64_t batch, std::int64_t head,
                             Room& room) {
  if (part.scalar_type() == at::kFloat) return head_of(part, batch, head);
  const std::int64_t tokens = part.size(1), head_dim = part.size(3);
  float* const floats = room.take(tokens * head_dim);
  const kernels::Bf16* const from = bf16_of(part, batch, head);
  for (std::int64_t token = 0; token < tokens; ++token) {
    kernels::widen(head_dim, from + token * part.stride(1), floats + token * head_dim);
  }
  return {floats, head_dim};
}

// Returns rows to write a head's floats to or, if zeroed, add to; put_back() must follow.
kernels::Rows floats_into(const Tensor& part, std::int64_t batch, std::int64_t head, Room& room) {
  if (part.scalar_type() == at::kFloat) return out_of(part, batch, head);
  const std::int64_t count = part.size(1) * part.size(3);
  float* const floats = room.take(count);
  std::fill_n(floats, count, 0.0F);
  return {floats, part.size(3)};
}

void put_back(kernels::Rows floats, const Tensor& part, std::int64_t batch, std::int64_t head) {
  if (part.scalar_type() == at::kFloat) return;
  auto* const to = static_cast<kernels::Bf16*>(part.mutable_data_ptr()) + batch * part.stride(0) +
                   head * part.stride(2);
  for (std::int64_t token = 0; token < part.size(1); ++token) {
    kernels::narrow(part.size(3), floats.data + token * floats.stride, to + token * part.stride(1));
  }
}

// Calls body(batch, key_head, scratch, room) for each head of keys, on all threads.
template <typename Body>
void for_each_head(const Parts& parts, const kernels::AttentionShape& shape, const Body& body) {
  constexpr std::int64_t kMostCopies = 8;  // fp32 copies of a head
  const std::int64_t heads = parts[kKeys].size(2), kept = kernels::attention_scratch(shape);
  const bool is_fp32 = parts[kKeys].scalar_type() == at::kFloat;
  const std::int64_t copies = is_fp32 ? 0 : kMostCopies * shape.tokens * shape.head_dim;
  units::parallel_for(0, parts[kKeys].size(0) * heads, 1,
                      [&](std::int64_t begin, std::int64_t end) {
                        std::vector<float> scratch(static_cast<std::size_t>(kept + copies));
                        for (std::int64_t i = begin; i < end; ++i) {
                          body(i / heads, i % heads, scratch.data(), Room(scratch.data() + kept));
                        }
                      });
}

struct Mixed {
  Tensor output;  // [batch, tokens, heads, head_dim]
  Tensor sums;    // [batch, heads, tokens], in fp32
};

Mixed mix(const Parts& parts, bool causal) {
  const Tensor& queries = parts[kQueries];
  const kernels::AttentionShape shape = shape_of(parts, causal);
  const std::int64_t heads = queries.size(2), served = heads / parts[kKeys].size(2);
  const Mixed result{.output = at::empty({queries.size(0), shape.tokens, heads, shape.head_dim},
                                         queries.options()),
                     .sums = at::empty({queries.size(0), heads, shape.tokens},
                                       queries.options().dtype(at::kFloat))};
  units::announce_flops(flop_size_of(queries, causal).forward());
  for_each_head(
      parts, shape, [&](std::int64_t batch, std::int64_t key_head, float* scratch, Room room) {
        const kernels::ConstRows keys = floats_of(parts[kKeys], batch, key_head, room);
        const kernels::ConstRows values = floats_of(parts[kValues], batch, key_head, room);
        for (std::int64_t head = key_head * served; head < (key_head + 1) * served; ++head) {
          Room own = room;
          const kernels::Rows output = floats_into(result.output, batch, head, own);
          kernels::attention(shape, floats_of(queries, batch, head, own), keys, values, output,
                             row_of(result.sums, batch, head), scratch);
          put_back(output, result.output, batch, head);
        }
      });
  return result;
}

// Fills `result`, whose keys and values must be zero.
void mix_backward(const Parts& parts, const Mixed& mixed, bool causal, const Tensor& gradient,
                  const Parts& result) {
  const kernels::AttentionShape shape = shape_of(parts, causal);
  const std::int64_t served = parts[kQueries].size(2) / parts[kKeys].size(2);
  units::announce_flops(flop_size_of(parts[kQueries], causal).backward());
  for_each_head(
      parts, shape, [&](std::int64_t batch, std::int64_t key_head, float* scratch, Room room) {
        const kernels::ConstRows keys = floats_of(parts[kKeys], batch, key_head, room);
        const kernels::ConstRows values = floats_of(parts[kValues], batch, key_head, room);
        const kernels::Rows of_keys = floats_into(result[kKeys], batch, key_head, room);
        const kernels::Rows of_values = floats_into(result[kValues], batch, key_head, room);
        for (std::int64_t head = key_head * served; head < (key_head + 1) * served; ++head) {
          Room own = room;
          const kernels::Rows of_queries = floats_into(result[kQueries], batch, head, own);
          kernels::attention_backward(
              shape, floats_of(parts[kQueries], batch, head, own), keys, values,
              floats_of(mixed.output, batch, head, own), row_of(mixed.sums, batch, head),
              floats_of(gradient, batch, head, own),
              {.queries = of_queries, .keys = of_keys, .values = of_values}, scratch);
          put_back(of_queries, result[kQueries], batch, head);
        }
        put_back(of_keys, result[kKeys], batch, key_head);
        put_back(of_values, result[kValues], batch, key_head);
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
  const bool is_bf16 = kernels::is_bf16(queries);
  for (const Tensor* const part : {&queries, &keys, &values}) {
    const bool takes = is_bf16 ? kernels::is_bf16(*part) : kernels::takes(*part);
    if (!takes || part->stride(3) != 1) return false;
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
