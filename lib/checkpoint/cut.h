// Checkpoints of a model that ranks hold together: each writes and reads what it has, whatever
// ranks wrote it, so that a run goes on in any other layout.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "lib/checkpoint/contents.h"
#include "lib/checkpoint/tensors.h"

namespace scaletrain::checkpoint {

// The part that a tensor's name stands for, a parameter's or KIND/NAME of the optimizer; nullptr:
// the tensor is not cut.
const Part* find_part(const Parts& parts, const std::string& name);

// True if `name`, of a tensor that stands for `part`, is KIND/NAME of optimizer state that is whole
// on the rank that has it.
bool is_whole(const Part* part, const std::string& name);

// Elements that a rank has of it.
std::int64_t count_of(const Part& part);

// Returns this rank's share of sharded `contents`: its pieces; the first rank also writes the rest.
Contents share_of_cut(const Contents& contents);

// Copies what this rank has, of model and optimizer, from a verified checkpoint into the tensors of
// `contents`, which are cut. Throws core::CheckpointError naming the first tensors that are
// missing, left over or of another shape or dtype.
void load_cut(
    const std::filesystem::path& checkpoint, const Contents& contents,
    const Progress& progress = [] {});

// Compares what each rank had of its own in a verified checkpoint, Contents::ranks, with `tensors`,
// of which there may be others in the file, and returns what copies them; `tensors` and `parts`
// outlive it. Throws core::CheckpointError as above, and where the checkpoint has none.
std::function<void()> prepare_cut_ranks(const std::filesystem::path& checkpoint,
                                        const Tensors& tensors, const Parts& parts);

// Like load_cut(), for weights alone; a floating-point dtype may differ
// (lib/checkpoint/checkpoint.h).
void load_cut_model(
    const std::filesystem::path& checkpoint, const Tensors& tensors, const Parts& parts,
    const Progress& progress = [] {}, std::string_view weights = "model");

}  // namespace scaletrain::checkpoint
