// ZeRO for optimizers that need full tensors: each tensor has one owner among the
// ranks that hold shards of it (Rajbhandari et al., ZeRO, 2020, section 5.1, by tensors in place of
// elements).
//
// The owner keeps the tensor's optimizer state, except state that is the weights themselves, of
// which each rank has its shard. In a step the others send it their shards of weights and gradient;
// it updates the full tensor, bit for bit as one process does, and sends the shards back: three
// all-to-alls, in portions. Full weights and gradients exist only during a step, and full weights
// while evaluation weights are computed.
#pragma once

#include <memory>
#include <vector>

#include "lib/dist/group.h"
#include "lib/optim/optimizer.h"

namespace scaletrain::engine {

// `parts`: this rank's shards of the trained parameters, in the same order on all `ranks` of the
// sharding group; concatenated they are the full tensors. `make` makes the optimizer of the tensors
// that a rank owns, perhaps none. Collective, as is each step. `ranks` must outlive the result.
std::unique_ptr<optim::Optimizer> with_owners(const optim::MakeOptimizer& make,
                                              const std::vector<units::NamedParameter>& parts,
                                              dist::Group& ranks);

}  // namespace scaletrain::engine
