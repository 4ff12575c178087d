// Incremental checkpoints: files of unchanged tensors are hard-linked from the previous checkpoint.
//
// A tensor is unchanged if the XXH3-128 of its bytes is the same as at the previous save. Tensors
// that are unchanged for the first time are written to a separate file, a kept file. Later saves
// link that file (link(2)) as long as none of its tensors changes. Its size and checksum are known,
// so it is not read again. Removing a checkpoint removes only names: the bytes stay for the others.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "lib/checkpoint/tensors.h"
#include "lib/core/disk/disk.h"
#include "lib/format/checkpoint/checkpoint_folder.h"
#include "lib/format/checkpoint/piece_table.h"

namespace scaletrain::checkpoint {

// Kept files of one process. It must have written the previous save itself: after a restart the
// first save is written whole.
class KeptFiles {
 public:
  // For each attempt of a save call begin(), then write() for each file of tensors, then
  // published() if it was published as `checkpoint`. A checkpoint of that name that another process
  // wrote does no harm.
  void begin() { next_.clear(); }
  void published(const std::filesystem::path& checkpoint);

  // Returns how many bytes of the table `whole` can be linked and need not be written.
  std::int64_t linkable_bytes(const std::string& whole, const format::PieceTable& table,
                              const TensorSums& sums) const;

  // Writes or links the pieces in `tensors` into `folder`, adds their files to `written`, and
  // records in its table `whole` which file holds each of them. Writes the tensors of a file that
  // cannot be linked (file system without links, too many links, file gone).
  void write(core::Disk& disk, const std::filesystem::path& folder, const std::string& whole,
             const HostTensors& tensors, const TensorSums& sums, std::int64_t step,
             format::FolderFiles& written);

 private:
  // Identifies a written file, even after it is renamed.
  struct Identity {
    dev_t device = 0;
    ino_t number = 0;
    std::int64_t bytes = 0, mtime_ns = 0;
    bool operator==(const Identity&) const = default;
  };
  struct Stored {
    format::CutTensor tensor;  // tensor with the piece that this process writes
    std::string sum;
  };
  struct File {
    format::FileEntry entry;
    Identity identity;
    bool is_kept = false;
    std::map<std::string, Stored> tensors = {};
  };
  using Files = std::map<std::string, File>;

  static std::optional<Identity> identity_of(const std::filesystem::path& path);
  static bool is_same(const std::string& name, const Stored& stored,
                      const format::PieceTable& table, const TensorSums& sums);
  static bool is_same(const File& file, const format::PieceTable& table, const TensorSums& sums);
  const Files& last_of(const std::string& whole) const;
  // Returns the names of unchanged tensors, in any file.
  std::set<std::string> unchanged(const std::string& whole, const format::PieceTable& table,
                                  const TensorSums& sums) const;
  bool link(core::Disk& disk, const std::filesystem::path& path, const File& file);
  void write_file(core::Disk& disk, const std::filesystem::path& path, const std::string& whole,
                  const HostTensors& tensors, const TensorSums& sums,
                  std::optional<std::int64_t> step, format::FolderFiles& written);

  std::filesystem::path folder_;  // the previous checkpoint's folder
  std::map<std::string, Files> last_,
      next_;  // by piece table: files of the previous checkpoint, and of the one being written
  std::int64_t kept_ = 0;  // number of files written by this process; makes names unique
  bool has_warned_ = false;
};

}  // namespace scaletrain::checkpoint
