// A text continued by a language model, token by token, with a cache of keys and values.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "lib/generate/sampler.h"
#include "lib/nn/model.h"

namespace scaletrain::generate {

struct Limits {
  std::int64_t tokens = 0;       // at most so many new ones
  std::int64_t positions = 0;    // of the model: as many tokens as it can be run on
  std::int64_t vocabulary = 0;   // tokens from here on are never drawn
  std::int64_t end_of_text = 0;  // ends the text and is not part of it
  bool documents_apart = false;  // the model was trained to see nothing before an end_of_text
};

enum class End { kEndOfText, kTokens, kPositions };

// Continues `prompt`, from 1 to limits.positions tokens, and calls `take` with each new token. The
// model is on `device`, and in evaluation mode afterwards. Returns what ended the text.
End continue_text(nn::Model& model, at::Device device, const std::vector<std::int64_t>& prompt,
                  const Limits& limits, const Sampler& sampler,
                  const std::function<void(std::int64_t token)>& take);

}  // namespace scaletrain::generate
