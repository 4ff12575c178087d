// Context parallelism as a model sees it: the split of sequences over ranks, made by a parallel
// layout and used by the engine and the models.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>

#include "lib/units/unit.h"

namespace scaletrain::units {

struct TokenCut {
  // Returns this rank's token positions in a sequence of `tokens`: [tokens here] int64, ascending.
  std::function<at::Tensor(std::int64_t tokens)> places;
  // Makes causal attention across the ranks for a batch. `documents`, [batch, tokens] int64, are of
  // the full sequences: a token sees only earlier tokens of its own document; undefined: all
  // earlier tokens.
  std::function<SharedAttention(const at::Tensor& documents)> attention;
};

}  // namespace scaletrain::units
