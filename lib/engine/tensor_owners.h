// Optimizers that look at whole tensors, where ranks have parts of them: of each tensor one rank is
// the owner (Rajbhandari et al., ZeRO, 2020, section 5.1, by tensors in place of elements).
//
// The owner has the tensor's optimizer state, but for what is the weights themselves: of that each
// rank has its part. In a step the others give it their parts of the weights and of the gradient,
// it updates the whole tensor as one process does, bit for bit, and gives the parts back: three
// exchanges of what a rank has, in portions. Whole weights and gradients are there in a step alone,
// and whole weights while those for an evaluation are computed.
#pragma once

#include <memory>
#include <vector>

#include "lib/dist/group.h"
#include "lib/optim/optimizer.h"

namespace scaletrain::engine {

// `parts`: what this rank has of the trained parameters, in the same order on all `ranks` that hold
// a model together; one behind the other they are the whole. `make` makes the optimizer of those
// that a rank owns, perhaps none. All ranks call it, and each step, at once. `ranks` outlives it.
std::unique_ptr<optim::Optimizer> with_owners(const optim::MakeOptimizer& make,
                                              const std::vector<units::NamedParameter>& parts,
                                              dist::Group& ranks);

}  // namespace scaletrain::engine
