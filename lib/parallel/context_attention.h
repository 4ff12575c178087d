// Ring attention (context parallelism): each rank of a ring holds some tokens of every sequence,
// and keys and values travel around the ring (Liu, Zaharia and Abbeel, Ring Attention with
// Blockwise Transformers, 2023). In backward they travel once more, together with their gradients.
//
// With n ranks a sequence is divided into 2n chunks; rank i holds chunks i and 2n - 1 - i, so that
// causal attention costs all ranks the same. Blocks that no query of a rank sees are skipped.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>

#include "lib/dist/ring.h"
#include "lib/units/token_cut.h"

namespace scaletrain::parallel {

// Token positions of the rank at `place` of `places` in a sequence of `tokens`: [tokens / places]
// int64 on the CPU, ascending. Throws core::RecipeError if `tokens` is not a multiple of 2 x
// `places`.
at::Tensor places_on_ring(std::int64_t tokens, int place, int places);

// Token split of this rank; the result and everything made from it keep the ring alive.
units::TokenCut token_cut(std::shared_ptr<dist::Ring> ring);

}  // namespace scaletrain::parallel
