// Chunked loss of a language model: the logits of all tokens are never in memory at once.
//
// Head and loss run on a few tokens at a time, and their gradients are computed in forward at once,
// so that only one chunk of [tokens, vocabulary] and its gradient exist. Liger Kernel (Hsu et al.,
// 2024, section 3.2) does this in one kernel; here it uses existing operations.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <vector>

namespace scaletrain::engine {

// Sum of the losses, 0-dim, of tokens `first` to `first + hidden.size(1)`, numbered over the batch
// row by row; `hidden`, [1, tokens, ...], is the input of the head.
using LossOfTokens = std::function<at::Tensor(const at::Tensor& hidden, std::int64_t first)>;

// Sums `loss` over all tokens of `hidden`, [batch, tokens, ...], at most `chunk` tokens at a time,
// in their order. `parameters`: tensors other than `hidden` that the loss depends on. Backward may
// run only once.
at::Tensor chunked_loss(const at::Tensor& hidden, const std::vector<at::Tensor>& parameters,
                        std::int64_t chunk, const LossOfTokens& loss);

// Flattens [batch, tokens, ...] to [1, batch * tokens, ...].
at::Tensor tokens_in_a_row(const at::Tensor& batch);

// Calls `part` with each chunk of `row`, [1, tokens, ...], and the number of its first token.
void for_each_chunk(const at::Tensor& row, std::int64_t chunk,
                    const std::function<void(const at::Tensor& part, std::int64_t first)>& part);

}  // namespace scaletrain::engine
