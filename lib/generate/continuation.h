// A text continued by a language model, token by token, with a cache of keys and values.
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
  std::int64_t tokens = 0;       // at most so many new ones
  std::int64_t positions = 0;    // of the model: as many tokens as it can be run on
  std::int64_t vocabulary = 0;   // tokens from here on are never drawn
  std::int64_t end_of_text = 0;  // ends the text and is not part of it
  bool documents_apart = false;  // the model was trained to see nothing before an end_of_text
};

enum class End { kEndOfText, kTokens, kPositions };

// The scores that a model in evaluation mode gives to all tokens behind each one of `input`, [1,
// tokens] int64: [1, tokens, vocabulary].
using Scores = std::function<at::Tensor(const at::Tensor& input, const units::Context& context)>;

// Continues `prompt`, from 1 to limits.positions tokens, and calls `take` with each new token; the
// model that gives `scores` is on `device`. Returns what ended the text.
End continue_text(const Scores& scores, at::Device device, const std::vector<std::int64_t>& prompt,
                  const Limits& limits, const Sampler& sampler,
                  const std::function<void(std::int64_t token)>& take);

}  // namespace scaletrain::generate
