// Tensor files of a checkpoint, or of one rank's share of it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "lib/checkpoint/contents.h"
#include "lib/checkpoint/kept_files.h"
#include "lib/checkpoint/tensors.h"
#include "lib/core/disk/disk.h"
#include "lib/format/checkpoint/checkpoint_folder.h"

namespace scaletrain::checkpoint {

// Files of rank-local buffers, of the model and of averaged weights: "buffers.safetensors",
// "ema_buffers.safetensors".
inline constexpr const char* kBuffers = "buffers.safetensors";
// File of Contents::ranks.
inline constexpr const char* kRanks = "ranks.safetensors";
std::string buffers_beside(const std::filesystem::path& mean);

class TensorFiles {
 public:
  // Copies the tensors to the host. With `kept`, `contents` are a share, and unchanged tensors are
  // linked from the last checkpoint.
  explicit TensorFiles(const Contents& contents, KeptFiles* kept = nullptr);

  // Bytes of tensors to write, without those that this rank will link; for a share, the total of
  // all ranks.
  std::int64_t bytes() const { return bytes_; }

  // Throws core::DivergedError where a tensor is not finite.
  format::FolderFiles write(core::Disk& disk, const std::filesystem::path& folder) const;

 private:
  struct File {
    std::string name;  // also if only pieces of it are written
    HostTensors tensors;
    TensorSums sums = {};  // sums of the pieces, if some may be linked
    std::string pieces =
        {};  // file of the pieces, for another rank; "": this rank's, as in the table
  };
  void add(std::string name, const Tensors& tensors);
  void add(std::string name, const Tensors& tensors, format::NotFinite refused);

  const Contents& contents_;
  KeptFiles* kept_;
  std::vector<File> files_;
  std::int64_t bytes_ = 0;
};

}  // namespace scaletrain::checkpoint
