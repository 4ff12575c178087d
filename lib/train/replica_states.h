// What replicas that are apart and meet in rounds (lib/parallel/sync/rounds.h) have of their own,
// brought to rank 0 behind an exchange, as it evaluates and saves alone: buffers, weights where
// they differ, and for a save the optimizer's state and the loss scale.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <string>

#include "lib/train/given_states.h"

namespace scaletrain::train {

struct Run;

// What rank 0 does with them.
enum class Wish : std::int32_t { kNothing, kEvaluation, kSave };

// Fills run.replicas, which then stands for where training is. Every replica that is there calls it
// once behind an exchange; the wish is rank 0's.
void share_states(Run& run, Wish wish);

// Of those whose names begin with `prefix`, all replicas', without it.
std::map<std::string, at::Tensor> states_of(const GivenStates& replicas, const std::string& prefix);

// Of this rank's tensors, which run.replicas has by the names `prefix` + theirs: the mean over the
// replicas that were there of what is floating point, this rank's of the rest, as copies.
std::map<std::string, at::Tensor> mean_over_replicas(const GivenStates& replicas,
                                                     const std::string& prefix,
                                                     const std::map<std::string, at::Tensor>& own);

}  // namespace scaletrain::train
