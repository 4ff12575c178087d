// Vocabulary-parallel softmax cross-entropy: each rank has the logits of some classes, and no rank
// ever has all of them.
#pragma once

#include <ATen/core/Tensor.h>

#include "lib/units/layer_cut.h"

namespace scaletrain::nn {

// Returns the sum over the samples, as at::cross_entropy_loss over all classes with this label
// smoothing, the same on all ranks. logits: [batch, classes of this rank] in fp32 or fp64. targets:
// [batch] int64, negative for samples that do not count. Communicates one maximum and two sums a
// sample, three with smoothing (Shoeybi et al., Megatron-LM, 2019, section 3).
at::Tensor cut_cross_entropy(const at::Tensor& logits, const at::Tensor& targets,
                             double label_smoothing, const units::ClassCut& cut);

}  // namespace scaletrain::nn
