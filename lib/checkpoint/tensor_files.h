// Tensor files of a checkpoint, or of one rank's share of it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "lib/checkpoint/contents.h"
#include "lib/checkpoint/kept_files.h"
#include "lib/checkpoint/tensors.h"
#include "lib/core/disk/disk.h"
#include "lib/format/checkpoint/checkpoint_folder.h"

namespace scaletrain::checkpoint {

class TensorFiles {
 public:
  // Copies the tensors to the host. With `kept`, files of shards link tensors that have not changed
  // since the last save. Throws core::InternalError for a shard of several slices: a file has one
  // slice of a tensor.
  explicit TensorFiles(const Contents& contents, KeptFiles* kept = nullptr);

  // Bytes that all ranks write, except those that this rank will link.
  std::int64_t bytes() const { return bytes_; }

  // Throws core::DivergedError if a tensor is not finite.
  format::FolderFiles write(core::Disk& disk, const std::filesystem::path& folder) const;

 private:
  struct File {
    const TensorFile* of;
    HostTensors tensors;
    bool links = false;    // unchanged tensors are linked
    TensorSums sums = {};  // hashes of the tensors, if unchanged ones are linked
  };
  void add(const TensorFile& file);

  std::int64_t step_;
  KeptFiles* kept_;
  std::vector<File> files_;
  format::PieceTables tables_;  // with offsets of 0
  std::int64_t bytes_ = 0;
};

}  // namespace scaletrain::checkpoint
