// States of decoupled replicas (local_sgd::ReplicaStates): rank 0's replica evaluates and saves
// alone, and receives from the others their buffers, weights if they differ, and for a save the
// optimizer state and the loss scale. Each of its ranks receives the state of the ranks at its
// place in the others.
#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "lib/dist/group.h"
#include "lib/local_sgd/replicas.h"

namespace scaletrain::train {

struct Run;

// Returns this rank's tensors for a request (local_sgd::StateSource): PREFIX/NAME, those for an
// evaluation first.
std::vector<std::pair<std::string, at::Tensor>> local_states(const Run& run,
                                                             local_sgd::StateRequest request);

// Returns all replicas' states whose names begin with `prefix`, named without it.
std::map<std::string, at::Tensor> states_of(const local_sgd::ReplicaStates& states,
                                            const std::string& prefix);

// Averages this rank's tensors, named `prefix` + name in `states`, over the replicas that were
// present: floating-point tensors are averaged, others are copied from this rank. With `others`,
// averages over the ranks of that group too; then it is collective.
std::map<std::string, at::Tensor> mean_over_replicas(const local_sgd::ReplicaStates& states,
                                                     const std::string& prefix,
                                                     const std::map<std::string, at::Tensor>& own,
                                                     dist::Group* others = nullptr);

// Returns the buffers of each data-parallel rank of the job for a checkpoint, [dp_size, ...].
// Decoupled replicas that share no states have those of rank 0's replica, if it has several ranks.
std::map<std::string, at::Tensor> buffers_of_data_ranks(const Run& run);

}  // namespace scaletrain::train
