// Sharded checkpoints: each rank writes and reads only its local shards. A checkpoint may be read
// with another parallel layout than the one that wrote it.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "lib/checkpoint/contents.h"
#include "lib/checkpoint/tensors.h"

namespace scaletrain::checkpoint {

// Returns the shard that belongs to a tensor name, which is a parameter's name or KIND/NAME of
// optimizer state; nullptr if the tensor is not sharded.
const Part* find_part(const Parts& parts, const std::string& name);

// True if `name`, a tensor that belongs to `part`, is optimizer state KIND/NAME that is not
// sharded: one rank holds it in full.
bool is_whole(const Part* part, const std::string& name);

// Returns the number of elements in the local shard.
std::int64_t count_of(const Part& part);

// Returns this rank's share of sharded `contents`: its pieces; the first rank also writes the rest.
Contents share_of_cut(const Contents& contents);

// Copies this rank's shards of model and optimizer state from a verified checkpoint into the
// tensors of `contents`, which are sharded. Throws core::CheckpointError naming the first tensors
// that are missing, left over or of another shape or dtype.
void load_cut(
    const std::filesystem::path& checkpoint, const Contents& contents,
    const Progress& progress = [] {});

// Compares the rank-local state of a verified checkpoint (Contents::ranks) with `tensors`; the file
// may have others. Returns the function that copies them; `tensors` and `parts` must outlive it.
// Throws core::CheckpointError as above, and if the checkpoint has no such state.
std::function<void()> prepare_cut_ranks(const std::filesystem::path& checkpoint,
                                        const Tensors& tensors, const Parts& parts);

// Like load_cut(), for weights only; the floating-point dtype may differ
// (lib/checkpoint/checkpoint.h).
void load_cut_model(
    const std::filesystem::path& checkpoint, const Tensors& tensors, const Parts& parts,
    const Progress& progress = [] {}, std::string_view weights = "model");

}  // namespace scaletrain::checkpoint
