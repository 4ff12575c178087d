// Attention over sequences of which each rank of a ring has some tokens: keys and values go around
// it (Liu, Zaharia and Abbeel, Ring Attention with Blockwise Transformers, 2023), backward once
// more, and their gradients with them until they are home.
//
// Of n ranks rank i has the chunks i and 2n - 1 - i of 2n that follow each other, so that with
// causal attention all of them have as many pairs of a query and a key; what no query of a rank
// sees it does not compute.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>

#include "lib/dist/ring.h"
#include "lib/units/token_cut.h"

namespace scaletrain::parallel {

// Which tokens of a sequence of `tokens` the rank at `place` of `places` has: [tokens / places]
// int64 on the CPU, ascending. Throws core::RecipeError where twice as many ranks do not divide
// them.
at::Tensor places_on_ring(std::int64_t tokens, int place, int places);

// Of this rank; all that is made of it keeps the ring.
units::TokenCut token_cut(std::shared_ptr<dist::Ring> ring);

}  // namespace scaletrain::parallel
