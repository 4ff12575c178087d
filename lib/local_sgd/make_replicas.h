// Chooses the synchronization method of a recipe's replicas.
#pragma once

#include <memory>
#include <vector>

#include "lib/local_sgd/weight_sync.h"

namespace scaletrain::local_sgd {

// Returns the method of options.sync. A single replica has nobody to decouple from: then
// options.decoupled has no effect.
std::unique_ptr<Replicas> make_replicas(LocalSgdOptions options,
                                        const std::vector<units::NamedParameter>& parameters,
                                        const Fragments& fragments, dist::Mesh& mesh);

}  // namespace scaletrain::local_sgd
