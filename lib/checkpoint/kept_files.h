// Files of tensors that a checkpoint has alike with the one before: they are linked, not written.
//
// A tensor is unchanged where its bytes have the XXH3-128 that they had at the save before. What is
// unchanged for the first time goes to a file of its own, a kept file; from then on that file is
// linked (link(2)) as long as none of its tensors changes. Its size and sum are known, so nothing
// of it is read again. A checkpoint that is removed takes away names alone: the bytes stay for the
// others.
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
  // For each attempt of a save: begin, write for each file of tensors; then, where it was published
  // as `checkpoint`, published. A checkpoint of that name which is none of ours does no harm.
  void begin() { next_.clear(); }
  void published(const std::filesystem::path& checkpoint);

  // Bytes of the tensors, of which a file of the table `whole` is to be written, that need not be.
  std::int64_t linkable_bytes(const std::string& whole, const format::PieceTable& table,
                              const TensorSums& sums) const;

  // Writes or links the pieces that `tensors` are into `folder`, adds their files to `written` and
  // notes in its table `whole` where each of them lies. Writes the tensors of a file that cannot be
  // linked (no such file system, too many links, it is gone).
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
    format::CutTensor tensor;  // with its one piece of this process
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
  // Names of the tensors that are unchanged, in any file.
  std::set<std::string> unchanged(const std::string& whole, const format::PieceTable& table,
                                  const TensorSums& sums) const;
  bool link(core::Disk& disk, const std::filesystem::path& path, const File& file);
  void write_file(core::Disk& disk, const std::filesystem::path& path, const std::string& whole,
                  const HostTensors& tensors, const TensorSums& sums,
                  std::optional<std::int64_t> step, format::FolderFiles& written);

  std::filesystem::path folder_;              // the previous checkpoint's folder
  std::map<std::string, Files> last_, next_;  // key: table; previous checkpoint, one being written
  std::int64_t kept_ = 0;                     // files of this process so far: no name comes twice
  bool has_warned_ = false;
};

}  // namespace scaletrain::checkpoint
