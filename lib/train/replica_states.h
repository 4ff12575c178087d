// What replicas that are apart and meet in rounds (lib/parallel/sync/rounds.h) have of their own,
// brought to rank 0's replica behind an exchange, as it evaluates and saves alone: buffers, weights
// where they differ, and for a save the optimizer's state and the loss scale. Of replicas of
// several ranks each rank has what those at its place in the others have.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <string>

#include "lib/dist/group.h"
#include "lib/train/given_states.h"

namespace scaletrain::train {

struct Run;

// What rank 0 does with them.
enum class Wish : std::int32_t { kNothing, kEvaluation, kSave };

// Fills run.replicas, which then stands for where training is. Every rank of every replica that is
// there calls it once behind an exchange; the wish is that of rank 0's replica.
void share_states(Run& run, Wish wish);

// Of those whose names begin with `prefix`, all replicas', without it.
std::map<std::string, at::Tensor> states_of(const GivenStates& replicas, const std::string& prefix);

// Of this rank's tensors, which run.replicas has by the names `prefix` + theirs: the mean over the
// replicas that were there of what is floating point, this rank's of the rest, as copies. `others`:
// over what its ranks have too, each of which calls it.
std::map<std::string, at::Tensor> mean_over_replicas(const GivenStates& replicas,
                                                     const std::string& prefix,
                                                     const std::map<std::string, at::Tensor>& own,
                                                     dist::Group* others = nullptr);

// For a checkpoint, of replicas that are apart: the buffers of each data coordinate, [readers,
// ...]; of async, which shares none, rank 0's replica's stand for all, where it has several of
// them.
std::map<std::string, at::Tensor> buffers_of_readers(const Run& run);

}  // namespace scaletrain::train
