// A checkpoint's folder as bytes: manifest, verification, finding the newest valid one
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

inline constexpr int kCheckpointFormat = 2;  // 1: files by their SHA-256

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

// The key of a file's sum in manifest.json.
const char* sum_key(Sum kind);

// Writes one checkpoint so that it is either whole or absent: a temporary folder
// "step-N.tmp.PID-..." (lib/core/disk/temporary_name.h), `write_files` puts every file into it
// (each synced) and returns their entries, then manifest.json, sync, rename to its name, sync of
// the parent. Returns the final path. After any error of `write_files` the temporary folder is
// removed.
//
// An existing valid checkpoint of that step is replaced only after the new one is whole: for a
// moment it is called "step-N.old", which counts as step N where there is no "step-N". After a
// failure of the disk the temporary folder is removed and everything is tried once more in a new
// one, so `write_files` may be called twice; then core::StorageError. Files that are read back with
// other bytes than were written are such a failure; tensors that are not what the tables say are a
// core::CheckpointError naming the first. `expected_bytes` is what the
// files will take: less than 1.2 times that free is core::StorageError before anything is written.
// A file system that does not say what is free, and a predecessor that cannot be removed, end
// nothing.
std::filesystem::path publish_checkpoint(
    core::Disk& disk, const std::filesystem::path& checkpoints, Manifest manifest,
    std::int64_t expected_bytes,
    const std::function<FolderFiles(const std::filesystem::path& folder)>& write_files,
    core::Housekeeping& housekeeping);
// With warnings of its own.
std::filesystem::path publish_checkpoint(
    core::Disk& disk, const std::filesystem::path& checkpoints, Manifest manifest,
    std::int64_t expected_bytes,
    const std::function<FolderFiles(const std::filesystem::path& folder)>& write_files);

// Reads manifest.json. Throws core::CheckpointError: absent, malformed, of a newer format. Here and
// below a fault of the machine (EIO, no descriptors) is what core::throw_read_fault throws of it.
Manifest read_manifest(const std::filesystem::path& checkpoint);

// Throws core::CheckpointError where the manifest does not name the file.
void require_listed(const std::filesystem::path& checkpoint, const Manifest& manifest,
                    const std::string& name);

// The files that hold pieces.
std::set<std::string> piece_files(const Manifest& manifest);

// The other files of tensors by name, and those that these pieces stand for.
std::vector<std::string> tensor_files(const Manifest& manifest);

// A small file of a checkpoint. Throws core::CheckpointError where the manifest does not name it,
// or says another checksum.
std::string read_listed_file(const std::filesystem::path& checkpoint, const Manifest& manifest,
                             const std::string& name);

// state.json of a checkpoint. Throws core::CheckpointError where it makes no sense by itself, or
// contradicts its checksum, the manifest's step or that of the folder's name.
TrainState read_state(const std::filesystem::path& checkpoint);

// The names of the classes by number (classes.json); empty where the training set names none, or
// the checkpoint has no such file. Throws core::CheckpointError for anything but a list of names.
std::vector<std::string> read_class_names(const std::filesystem::path& checkpoint,
                                          const Manifest& manifest);

// Checks that every file of the manifest is there with its size and SHA-256, and no other file.
// Throws core::CheckpointError naming the file, both sums and what to do.
Manifest verify_checkpoint(const std::filesystem::path& checkpoint);

// verify_checkpoint, and whether the contents make sense: the state beside manifest, folder's name,
// recipe and tensors, and no tensor that is not finite. Throws core::CheckpointError naming file
// and field or tensor. All that resumes from a checkpoint calls it.
Manifest check_checkpoint(const std::filesystem::path& checkpoint);

// Steps of the checkpoints in a run's "checkpoints" folder, ascending; temporary folders left out.
std::vector<std::int64_t> list_checkpoints(const std::filesystem::path& checkpoints);

// The folder of a step that list_checkpoints names.
std::filesystem::path checkpoint_path(const std::filesystem::path& checkpoints, std::int64_t step);

// The checkpoints that a path of a person means.
struct CheckpointsAt {
  bool is_one = false;                         // the path names one checkpoint, not a run
  std::vector<std::filesystem::path> folders;  // newest first
};

// `path` is a checkpoint folder; latest or best, which mean the newest and the best whatever the
// links of these names point to; a run folder; or its checkpoints folder. Throws
// core::CheckpointError for a file, and for a checkpoint that is not there.
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
