// A checkpoint's folder as bytes: manifest, verification, finding the newest valid one
// (docs/formats/checkpoint.md). What the tensors mean is lib/checkpoint's.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "lib/core/disk.h"
#include "lib/format/safetensors.h"

namespace scaletrain::format {

inline constexpr int kCheckpointFormat = 1;

struct FileEntry {
  std::int64_t bytes = 0;
  std::string sha256;
};

struct Manifest {
  int format = kCheckpointFormat;
  std::string program;      // "scaletrain 0.1.0"
  std::int64_t step = 0;
  std::map<std::string, FileEntry> files;  // by name
};

// "step-00001200".
std::string checkpoint_name(std::int64_t step);

// Writes one checkpoint so that it is either whole or absent: a temporary folder
// "step-N.tmp.PID", `write_files` puts every file into it (each synced) and returns their entries,
// then manifest.json, sync, rename to its name, sync of the parent. Returns the final path. An
// existing valid checkpoint of that step is replaced only after the new one is whole. Throws
// core::StorageError, the temporary folder removed where possible.
std::filesystem::path publish_checkpoint(
    core::Disk& disk, const std::filesystem::path& checkpoints, Manifest manifest,
    const std::function<std::map<std::string, FileEntry>(const std::filesystem::path& folder)>&
        write_files);

// Reads manifest.json. Throws core::CheckpointError: absent, malformed, of a newer format.
Manifest read_manifest(const std::filesystem::path& checkpoint);

// Checks that every file of the manifest is there with its size and SHA-256, and no other file.
// Throws core::CheckpointError naming the file, both sums and what to do.
Manifest verify_checkpoint(const std::filesystem::path& checkpoint);

// Steps of the checkpoints in a run's "checkpoints" folder, ascending; temporary folders left out.
std::vector<std::int64_t> list_checkpoints(const std::filesystem::path& checkpoints);

// What `scaletrain resume PATH` means: a checkpoint folder itself, a run folder, its checkpoints
// folder, or latest/best: the checkpoint to load, verified. For a run folder: the newest that
// verifies, damaged ones reported through `report`. For an explicit checkpoint: that one or
// core::CheckpointError. nullopt: a run folder without any checkpoint.
std::optional<std::filesystem::path> find_checkpoint(
    const std::filesystem::path& path, const std::function<void(const std::string&)>& report);

// Removes temporary folders whose process is dead, then checkpoints that neither keep_last nor
// `keep` names; the newest is never removed.
void retain_checkpoints(core::Disk& disk, const std::filesystem::path& checkpoints,
                        std::int64_t keep_last, const std::vector<std::int64_t>& keep);

// SHA-256 over the tensors of model.safetensors in bytewise order of names: name, NUL, dtype, NUL,
// dimensions joined by commas, NUL, data.
std::string model_digest(const std::filesystem::path& checkpoint);

}  // namespace scaletrain::format
