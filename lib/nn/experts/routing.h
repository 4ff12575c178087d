// Routing of a mixture of experts: assigns tokens to experts.
//
// Tokens are gathered into rows sorted by expert, so that each expert multiplies all of its rows at
// once, and the outputs are gathered back. Both are one gather forward and one backward: no sum
// depends on the order of threads.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace scaletrain::nn {

struct Routing {
  std::int64_t choices = 0;        // experts of a token
  at::Tensor weights;              // [choices, tokens] fp32: weights of its experts, 0 if dropped
  at::Tensor chosen;               // [experts] int64: tokens that chose it, dropped ones included
  std::vector<std::int64_t> rows;  // row count of each expert, in order
  // Positions of rows among all choices (first choices of all tokens, then the second ones):
  at::Tensor order;   // [rows] int64: the choice of each row
  at::Tensor places;  // [choices * tokens] int64: row of each choice; any if dropped
  // [choices * tokens] bool: false for dropped choices; undefined: none is dropped.
  at::Tensor kept;
};

// Assigns each token to the `choices` experts with the highest probability [tokens, experts], plus
// `bias` [experts] if defined. Weights are the probabilities without the bias, divided by their sum
// (Jiang et al., Mixtral of Experts, 2024, section 2.1). An expert takes at most `capacity` rows
// (0: no limit), first choices before second ones and earlier tokens before later ones. Waits for
// the device.
Routing route(const at::Tensor& probabilities, std::int64_t choices, const at::Tensor& bias = {},
              std::int64_t capacity = 0);

// Returns the capacity of an expert: `factor` times its share if all get equally many rows, rounded
// up (Fedus et al., Switch Transformers, 2021, equation 3); 0 for a factor of 0.
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

// Returns the load-balancing loss: `choices` if all experts have the same load, at most the number
// of experts. `sums` [2, experts], over `rows` tokens and layers: how often each expert was chosen,
// and its probabilities (Fedus et al., equations 4 to 6, over all layers as in Mixtral).
at::Tensor balance_loss(const at::Tensor& sums, std::int64_t rows);

}  // namespace scaletrain::nn
