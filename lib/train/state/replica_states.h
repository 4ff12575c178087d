// Sends the per-replica state of decoupled replicas (lib/local_sgd/diloco_client.h) to rank 0's
// replica after an outer step, since it evaluates and saves alone: buffers, weights if they differ,
// and for a save the optimizer state and the loss scale. Each rank of rank 0's replica receives the
// state of the ranks at its place in the others.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <string>

#include "lib/dist/group.h"
#include "lib/train/run/given_states.h"

namespace scaletrain::train {

struct Run;

// State request: the purpose for which rank 0 needs the states.
enum class Wish : std::int32_t { kNothing, kEvaluation, kSave };

// Fills run.replicas with the states of all replicas at the current step. Collective over the ranks
// of all live replicas, once after an outer step. The `wish` of rank 0's replica counts.
void share_states(Run& run, Wish wish);

// Returns all replicas' states whose names begin with `prefix`, named without it.
std::map<std::string, at::Tensor> states_of(const GivenStates& replicas, const std::string& prefix);

// Averages this rank's tensors, named `prefix` + name in run.replicas, over the replicas that were
// present: floating-point tensors are averaged, others are copied from this rank. With `others`,
// averages over the ranks of that group too; then it is collective.
std::map<std::string, at::Tensor> mean_over_replicas(const GivenStates& replicas,
                                                     const std::string& prefix,
                                                     const std::map<std::string, at::Tensor>& own,
                                                     dist::Group* others = nullptr);

// For a checkpoint, of replicas that are apart: the buffers of each data coordinate, [readers,
// ...]; of async, which shares none, rank 0's replica's stand for all, where it has several of
// them.
std::map<std::string, at::Tensor> buffers_of_readers(const Run& run);

}  // namespace scaletrain::train
