// The loss of a language model without the logits of all of its tokens at once.
//
// Head and loss take a few tokens at a time, and their gradients are taken at once, in forward: of
// [tokens, vocabulary] one chunk is there, and of its gradient. As Hsu et al., Liger Kernel, 2024,
// section 3.2, do it in one kernel, this does with the operations there are.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <vector>

namespace scaletrain::engine {

// The sum of the losses, 0-dim, of tokens `first` to `first + hidden.size(1)`, counted over the
// batch row by row; `hidden` [1, tokens, ...] is what comes before the head.
using LossOfTokens = std::function<at::Tensor(const at::Tensor& hidden, std::int64_t first)>;

// `loss` of all tokens of `hidden` [batch, tokens, ...], at most `chunk` at a time, added up in
// their order. `parameters` are those that the loss depends on beside `hidden`. Backward may be run
// once.
at::Tensor chunked_loss(const at::Tensor& hidden, const std::vector<at::Tensor>& parameters,
                        std::int64_t chunk, const LossOfTokens& loss);

// The tokens of a batch one behind the other, [1, batch * tokens, ...], of [batch, tokens, ...].
at::Tensor tokens_in_a_row(const at::Tensor& batch);

// Calls `part` with the chunks of `row` [1, tokens, ...] and the number of each one's first token.
void for_each_chunk(const at::Tensor& row, std::int64_t chunk,
                    const std::function<void(const at::Tensor& part, std::int64_t first)>& part);

}  // namespace scaletrain::engine
