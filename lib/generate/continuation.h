// Text generation with a language model, token by token, with a KV cache.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "lib/generate/sampler.h"
#include "lib/units/unit.h"

namespace scaletrain::generate {

struct Limits {
  std::int64_t tokens = 0;       // maximum number of new tokens
  std::int64_t positions = 0;    // context length of the model
  std::int64_t vocabulary = 0;   // size of the tokenizer; larger token numbers are never drawn
  std::int64_t end_of_text = 0;  // token that ends the text; not passed on
  bool documents_apart = false;  // the model was trained to see nothing before an end_of_text token
};

enum class End { kEndOfText, kTokens, kPositions };

// Logits of the next token after each token of `input`, [1, tokens] int64, from a model in
// evaluation mode: [1, tokens, vocabulary].
using Scores = std::function<at::Tensor(const at::Tensor& input, const units::Context& context)>;

// Continues `prompt`, of 1 to limits.positions tokens, and calls `take` with each new token. The
// model behind `scores` is on `device`. Returns the reason that ended the text.
End continue_text(const Scores& scores, at::Device device, const std::vector<std::int64_t>& prompt,
                  const Limits& limits, const Sampler& sampler,
                  const std::function<void(std::int64_t token)>& take);

}  // namespace scaletrain::generate
