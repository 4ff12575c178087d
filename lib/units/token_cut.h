// Sequences of tokens that several ranks share: made by a layout and used by those who do not know
// it.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>

#include "lib/units/unit.h"

namespace scaletrain::units {

struct TokenCut {
  // Which tokens of a sequence of so many are here: [tokens here] int64, ascending.
  std::function<at::Tensor(std::int64_t tokens)> places;
  // Among the tokens of a batch of whole sequences. `documents` [batch, tokens] int64: a token sees
  // those before it of its own document alone; undefined: all before it.
  std::function<SharedAttention(const at::Tensor& documents)> attention;
};

}  // namespace scaletrain::units
