// Routing of a mixture of experts: assigns tokens to experts.
//
// Tokens are taken to their experts as rows that are sorted by expert, so that each expert
// multiplies all of its rows at once, and the experts' answers are taken back. Both are one gather
// forward and one backward: nothing is added up in an order that depends on threads.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace scaletrain::nn {

struct Routing {
  std::int64_t choices = 0;        // experts of a token
  at::Tensor weights;              // [choices, tokens] fp32: of its experts, 0 of one that drops it
  at::Tensor chosen;               // [experts] int64: by how many tokens, dropped ones too
  std::vector<std::int64_t> rows;  // row count of each expert, in order
  // The rows' places among all choices, the first choices of all tokens, then the second ones:
  at::Tensor order;   // [rows] int64: which one a row is
  at::Tensor places;  // [choices * tokens] int64: its row; of one that was dropped any
  at::Tensor kept;    // [choices * tokens] bool: whether it has one; undefined: all have
};

// Each token's `choices` experts of the highest probability [tokens, experts], plus `bias`
// [experts] where that is defined; their weights are the probabilities without it, divided by their
// sum (Jiang et al., Mixtral of Experts, 2024, section 2.1). An expert takes at most `capacity`
// rows, those of first choices before those of second ones and earlier tokens before later ones;
// 0: all. Waits for the device.
Routing route(const at::Tensor& probabilities, std::int64_t choices, const at::Tensor& bias = {},
              std::int64_t capacity = 0);

// The most rows that an expert takes: `factor` times its part where all get as many, rounded up
// (Fedus et al., Switch Transformers, 2021, equation 3); 0 for a factor of 0.
std::int64_t capacity_of(double factor, std::int64_t tokens, std::int64_t choices,
                         std::int64_t experts);

// tokens [tokens, dim] -> rows [rows, dim].
at::Tensor to_experts(const at::Tensor& tokens, const Routing& routing);

// rows [rows, dim] -> tokens [tokens, dim], each the sum of its experts' rows times their weights.
at::Tensor from_experts(const at::Tensor& rows, const Routing& routing);

// Returns updated routing biases [experts], given how many tokens chose each expert: `rate` up for
// fewer than the mean, `rate` down for more (Wang et al., Auxiliary-Loss-Free Load Balancing, 2024,
// algorithm 1).
at::Tensor moved_bias(const at::Tensor& bias, const at::Tensor& chosen, double rate);

// The number of choices where all experts have the same part, at most that of experts. `sums` [2,
// experts], over `rows` tokens and layers: how often each was chosen, and its probabilities (Fedus
// et al., equations 4 to 6, as Mixtral takes it of all layers together).
at::Tensor balance_loss(const at::Tensor& sums, std::int64_t rows);

}  // namespace scaletrain::nn
