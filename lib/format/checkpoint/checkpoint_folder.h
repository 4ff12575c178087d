// The folder of a checkpoint: manifest, verification, finding the newest valid checkpoint
// (docs/reference/formats/checkpoint.md). lib/checkpoint interprets the tensors.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/core/disk/disk.h"
#include "lib/core/housekeeping.h"
#include "lib/format/checkpoint/checkpoint_folder_names.h"
#include "lib/format/checkpoint/piece_table.h"
#include "lib/format/checkpoint/train_state.h"
#include "lib/format/hashed_file.h"

namespace scaletrain::format {

inline constexpr int kCheckpointFormat = 2;  // format 1 had SHA-256 checksums

using FileEntries = std::map<std::string, FileEntry>;  // keyed by name

struct Manifest {
  std::int64_t format = kCheckpointFormat;  // format of the manifest that was read
  std::string program;                      // "scaletrain 0.1.0"
  std::int64_t step = 0;
  FileEntries files = {};
  PieceTables tensors = {};  // tensors stored as shards
};

// Contents written into a checkpoint's folder.
struct FolderFiles {
  // NOLINTNEXTLINE(google-explicit-constructor): most have no pieces
  FolderFiles(FileEntries entries, PieceTables pieces = {})
      : files(std::move(entries)), tensors(std::move(pieces)) {}

  FileEntries files;
  PieceTables tensors;
  // If set, every file is read back and verified before publishing, and this is called for each
  // file.
  std::function<void()> read_back = {};
};

// Returns the key of a file's checksum in manifest.json.
const char* sum_key(Sum kind);

// Writes a checkpoint atomically. Makes a temporary folder "step-N.tmp.PID-..."
// (lib/core/disk/temporary_name.h), in which `write_files` writes every file (each synced) and
// returns their entries; then writes manifest.json, syncs, renames the folder, and syncs its
// parent. Returns the final path. After an error of `write_files` the temporary folder is removed.
//
// An existing valid checkpoint of that step is replaced only once the new one is complete: for a
// moment it is called "step-N.old", which counts as step N if there is no "step-N". After a disk
// error the temporary folder is removed and everything is tried once more in a new one, so
// `write_files` may be called twice; then core::StorageError is thrown. Files that read back
// differently count as a disk error. Tensors that do not match the tables are a
// core::CheckpointError naming the first. `expected_bytes` is the expected size: core::StorageError
// is thrown before writing if less than 1.2 times that is free. An unknown amount of free space, or
// an old checkpoint that cannot be removed, is not an error.
std::filesystem::path publish_checkpoint(
    core::Disk& disk, const std::filesystem::path& checkpoints, Manifest manifest,
    std::int64_t expected_bytes,
    const std::function<FolderFiles(const std::filesystem::path& folder)>& write_files,
    core::Housekeeping& housekeeping);
// Overload that logs its warnings itself.
std::filesystem::path publish_checkpoint(
    core::Disk& disk, const std::filesystem::path& checkpoints, Manifest manifest,
    std::int64_t expected_bytes,
    const std::function<FolderFiles(const std::filesystem::path& folder)>& write_files);

// Reads manifest.json. Throws core::CheckpointError if it is absent, malformed or of a newer
// format. Here and below, machine faults (EIO, no descriptors) are thrown as
// core::throw_read_fault() does.
Manifest read_manifest(const std::filesystem::path& checkpoint);

// Throws core::CheckpointError if the manifest does not list the file.
void require_listed(const std::filesystem::path& checkpoint, const Manifest& manifest,
                    const std::string& name);

// Returns the files that hold pieces of tensors.
std::set<std::string> piece_files(const Manifest& manifest);

// Returns the names of all tensor files: the complete ones, and those that are stored as pieces.
std::vector<std::string> tensor_files(const Manifest& manifest);

// Reads a small file of a checkpoint. Throws core::CheckpointError if the manifest does not list it
// or has another checksum.
std::string read_listed_file(const std::filesystem::path& checkpoint, const Manifest& manifest,
                             const std::string& name);

// Reads state.json of a checkpoint. Throws core::CheckpointError if it is invalid, or contradicts
// its checksum, the manifest's step or the folder's name.
TrainState read_state(const std::filesystem::path& checkpoint);

// Returns the class names by number (classes.json); {} if the training set has no names or the file
// is absent. Throws core::CheckpointError if it is not a list of names.
std::vector<std::string> read_class_names(const std::filesystem::path& checkpoint,
                                          const Manifest& manifest);

// Checks that every file of the manifest exists with its size and checksum, and that there is no
// other file. Throws core::CheckpointError naming the file, both checksums and a remedy.
Manifest verify_checkpoint(const std::filesystem::path& checkpoint);

// Verifies a checkpoint like verify_checkpoint(), and checks its contents: the state against
// manifest, folder name, recipe and tensors, and that all tensors are finite. Throws
// core::CheckpointError naming file and field or tensor. Every resume calls it.
Manifest check_checkpoint(const std::filesystem::path& checkpoint);

// Steps of the checkpoints in a run's "checkpoints" folder, ascending; temporary folders left out.
std::vector<std::int64_t> list_checkpoints(const std::filesystem::path& checkpoints);

// Returns the folder of a step that list_checkpoints() returned.
std::filesystem::path checkpoint_path(const std::filesystem::path& checkpoints, std::int64_t step);

// Checkpoints at a path given by the user.
struct CheckpointsAt {
  bool is_one = false;                         // the path names one checkpoint, not a run
  std::vector<std::filesystem::path> folders;  // newest first
};

// `path` is a checkpoint folder; `latest` or `best`, which are resolved by the checkpoints' states
// rather than by the links; a run folder; or its checkpoints folder. Throws core::CheckpointError
// for a file or a missing checkpoint.
CheckpointsAt checkpoints_at(const std::filesystem::path& path);

// Finds and checks the checkpoint for `scaletrain resume PATH`. For a run folder: the newest valid
// one, damaged ones reported through `report`; core::CheckpointError if there are checkpoints and
// none is valid. For an explicit checkpoint: itself or core::CheckpointError. nullopt: a run folder
// without any checkpoint, or nothing at all at `path`.
std::optional<std::filesystem::path> find_checkpoint(
    const std::filesystem::path& path, const std::function<void(const std::string&)>& report);

// Like find_checkpoint, for read-only commands: warns of damaged checkpoints. Throws
// core::CheckpointError if there is none.
std::filesystem::path checkpoint_at(const std::filesystem::path& path);

// SHA-256 over the tensors of model.safetensors in bytewise order of names: name, NUL, dtype, NUL,
// dimensions joined by commas, NUL, data.
std::string model_digest(const std::filesystem::path& checkpoint);

}  // namespace scaletrain::format
