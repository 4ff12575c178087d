// Document masking: keeps several documents in one window of tokens apart.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "lib/units/unit.h"

namespace scaletrain::input {

struct Documents {
  at::Tensor numbers;    // [batch, tokens] int64: number of each token's document in its window
  at::Tensor positions;  // [batch, tokens] int64: position in its document's part of the window
};
// `tokens`: [batch, tokens] int64; `end_of_text` is the last token of each document.
Documents documents_of(const at::Tensor& tokens, std::int64_t end_of_text);

// Context with document masking for `tokens` as above: each token sees itself and earlier tokens of
// its own document, and positions count from the document's beginning, or from the window's if it
// began earlier, as if each document stood alone. Does not wait for the device.
units::Context apart(const at::Tensor& tokens, std::int64_t end_of_text);

}  // namespace scaletrain::input
