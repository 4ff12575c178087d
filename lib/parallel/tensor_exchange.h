// What the ranks of a tensor group exchange, in forward and in backward, while each computes a part
// of every layer (Shoeybi et al., Megatron-LM, 2019, section 3; with `sequence` Korthikanti et al.,
// Reducing Activation Recomputation in Large Transformer Models, 2022, section 4.2).
//
// Without `sequence` what lies between the cut layers is whole on each rank: a layer that is cut by
// its inputs ends in a sum over the ranks, and what enters those that are cut by their outputs has
// as gradient a sum over the ranks. With it each rank has some of the tokens there, and the sums
// become a gather and a scattered sum of as many bytes.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "lib/dist/group.h"
#include "lib/units/layer_cut.h"
#include "lib/units/unit.h"

namespace scaletrain::parallel {

// A group outlives all that is made of it. Tensors are [batch, tokens, ...], and with `sequence`
// the ranks divide the tokens.

// Of what layers take that are cut by their outputs.
units::Exchange entry_exchange(dist::Group& group, bool sequence);
// Of what layers give that are cut by their inputs, or tables by their rows.
units::Exchange sum_exchange(dist::Group& group, bool sequence);

// Of what each rank has counted of its own: the sum, of which each goes on with all.
units::Exchange count_exchange(dist::Group& group);

// `units` with the tokens divided behind the first one and joined behind the last but one.
std::vector<units::Unit> with_divided_tokens(std::vector<units::Unit> units, dist::Group& group);
// From here on a gradient of `parameter`, which all ranks have and use with other tokens, is the
// sum of theirs, as soon as backward has it.
void sum_gradient(const at::Tensor& parameter, dist::Group& group);

units::ClassCut class_cut(dist::Group& group, std::int64_t first, std::int64_t classes);

}  // namespace scaletrain::parallel
