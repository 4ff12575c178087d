// Collectives of tensor parallelism, in forward and backward, where each rank computes a part of
// every layer (Shoeybi et al., Megatron-LM, 2019, section 3), and of sequence parallelism,
// `sequence` (Korthikanti et al., Reducing Activation Recomputation in Large Transformer Models,
// 2022, section 4.2).
//
// Without `sequence` activations between sharded layers are full on each rank: a row-parallel layer
// ends in an all-reduce, and the gradient of a column-parallel layer's input is all-reduced. With
// `sequence` each rank holds some tokens there, and the all-reduces become an all-gather and a
// reduce-scatter of as many bytes.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "lib/dist/group.h"
#include "lib/units/layer_cut.h"
#include "lib/units/unit.h"

namespace scaletrain::parallel {

// The group must outlive everything made from it. Tensors are [batch, tokens, ...]; with `sequence`
// the ranks divide the tokens.

// For inputs of column-parallel layers: all-reduces their gradients.
units::Exchange entry_exchange(dist::Group& group, bool sequence);
// All-reduces the outputs of row-parallel layers and of embeddings sharded by rows.
units::Exchange sum_exchange(dist::Group& group, bool sequence);

// Sums counts of all ranks; the gradient, too, is summed over the ranks.
units::Exchange count_exchange(dist::Group& group);

// Splits the tokens over the ranks after the first unit and gathers them after the last but one.
std::vector<units::Unit> with_divided_tokens(std::vector<units::Unit> units, dist::Group& group);
// All-reduces each gradient of `parameter`, a parameter that all ranks hold and use for different
// tokens, as soon as backward has computed it.
void sum_gradient(const at::Tensor& parameter, dist::Group& group);

units::ClassCut class_cut(dist::Group& group, std::int64_t first, std::int64_t classes);

}  // namespace scaletrain::parallel
