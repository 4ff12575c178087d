// Softmax cross-entropy of logits of which each rank has those of some classes: no rank ever has
// all of them.
#pragma once

#include <ATen/core/Tensor.h>

#include "lib/units/layer_cut.h"

namespace scaletrain::nn {

// The sum over the samples, as at::cross_entropy_loss gives it of all classes with this label
// smoothing, and the same on all ranks: logits [batch, classes of this rank] in fp32 or fp64,
// targets [batch] int64, negative where a sample does not count. Exchanges one maximum and two sums
// a sample, with smoothing three (Shoeybi et al., Megatron-LM, 2019, section 3, has the logits).
at::Tensor cut_cross_entropy(const at::Tensor& logits, const at::Tensor& targets,
                             double label_smoothing, const units::ClassCut& cut);

}  // namespace scaletrain::nn
