// Resumes a run from a checkpoint.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

#include "lib/dist/group.h"
#include "lib/format/checkpoint/train_state.h"
#include "lib/format/tar/class_names.h"
#include "lib/train/run/run.h"

namespace scaletrain::train {

// Reads state.json of `checkpoint` on rank 0 and broadcasts it, because other nodes may not have
// the folder. Collective.
format::TrainState state_of_rank_0(dist::Group& group, const std::filesystem::path& checkpoint);

// Reads the class names of `checkpoint` (classes.json) on rank 0 and broadcasts them. Collective.
format::ClassNames classes_of_rank_0(dist::Group& group, const std::filesystem::path& checkpoint);

// Returns `ramp` as the list of numbers in state.json (format::ramp_of()).
std::vector<std::int64_t> numbers_of(const std::optional<core::BatchRamp>& ramp);

// Loads `checkpoint`, whose state is already in `run.state`: the model and the optimizer on all
// ranks, or for a sharded model each rank's shards of both; and finds the best checkpoints in the
// run's folder. Collective. Throws core::RecipeError for another global batch or batch ramp,
// core::CheckpointError for other tensors.
void restore(Run& run, const std::filesystem::path& checkpoint);

// Loads the run's averaged weights and their counts from `checkpoint`, if there is one. An average
// that it lacks is a warning and starts with the run's model. `same_ranks`: the checkpoint has the
// same number of ranks. Collective.
void restore_means(Run& run, const std::optional<std::filesystem::path>& checkpoint,
                   bool same_ranks);

// Warns of differences between `run` and the run that it resumes, whose state was `was`.
void warn_of_differences(const Run& run, const format::TrainState& was);

}  // namespace scaletrain::train
