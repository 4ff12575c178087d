// Several documents in one window of tokens, kept apart.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "lib/units/unit.h"

namespace scaletrain::input {

struct Documents {
  at::Tensor numbers;    // [batch, tokens] int64: which of its window's each token belongs to
  at::Tensor positions;  // alike: which of its tokens, or of those in this window, each one is
};
// tokens [batch, tokens] int64, in which `end_of_text` is the last token of each document.
Documents documents_of(const at::Tensor& tokens, std::int64_t end_of_text);

// tokens [batch, tokens] int64, in which `end_of_text` is the last token of each document -> a
// context in which every token sees itself and what is before it in its own document, and in which
// positions count from each document's beginning, or from the window's: as if every document stood
// alone. Queues work only.
units::Context apart(const at::Tensor& tokens, std::int64_t end_of_text);

}  // namespace scaletrain::input
