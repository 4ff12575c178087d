// How a run goes on from a checkpoint.
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

// Fills the model on rank 0 and the optimizer on all ranks from `checkpoint`, whose state
// `run.state` is already, where ranks hold the model together what each has of both, and looks for
// the best checkpoints in the run's folder. Every rank calls it. Throws core::RecipeError for
// another global batch or ramp of it, core::CheckpointError for other tensors.
void restore(Run& run, const std::filesystem::path& checkpoint);

// Fills the run's means and their counts from `checkpoint`, where there is one; an ema that it has
// not is warned about, and the mean begins with the run's model. `same_ranks`: the checkpoint is of
// as many. Every rank calls it.
void restore_means(Run& run, const std::optional<std::filesystem::path>& checkpoint,
                   bool same_ranks);

// Warns of what makes `run` another one than the run it goes on from, whose state was `was`.
void warn_of_differences(const Run& run, const format::TrainState& was);

}  // namespace scaletrain::train
