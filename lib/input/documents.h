// Several documents in one window of tokens, kept apart.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "lib/units/unit.h"

namespace scaletrain::input {

// tokens [batch, tokens] int64, in which `end_of_text` is the last token of each document -> a
// context in which every token sees itself and what is before it in its own document, and in which
// positions count from each document's beginning, or from the window's: as if every document stood
// alone. Queues work only.
units::Context apart(const at::Tensor& tokens, std::int64_t end_of_text);

}  // namespace scaletrain::input
