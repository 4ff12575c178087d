// Reads the tensors of one file of a checkpoint, complete or written as pieces by several ranks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lib/format/checkpoint/piece_table.h"
#include "lib/format/safetensors/safetensors.h"

namespace scaletrain::format {

// True if there are tensors at `path`: a file, or pieces of it (below).
bool has_tensors(const std::filesystem::path& path);

// Several threads may read from one object.
class StoredTensors {
 public:
  // `path` is a safetensors file, or a file that the manifest beside it lists in pieces. Throws the
  // core::CheckpointError of SafetensorsFile and read_manifest(), and throws it if a file of pieces
  // differs from the manifest or has another step than the first file.
  explicit StoredTensors(const std::filesystem::path& path);

  // Sorted by name; for shards, `begin` and `end` count from the tensor's first byte.
  const std::vector<TensorInfo>& tensors() const { return tensors_; }
  const std::map<std::string, std::string>& metadata() const { return metadata_; }

  // Reads bytes of `tensor`, from byte `offset` on, until `out` is full; both are multiples of the
  // element size.
  void read(const TensorInfo& tensor, std::span<std::byte> out, std::int64_t offset = 0) const;

  // Reads the elements of the piece `wanted` of `tensor` into `out`, from whatever pieces are
  // stored: each rank reads only what it needs.
  void read(const TensorInfo& tensor, const Piece& wanted, std::span<std::byte> out) const;

 private:
  void open_pieces(const std::filesystem::path& path, PieceTable table);

  std::optional<SafetensorsFile> whole_;
  std::filesystem::path folder_;  // folder of the shards
  PieceTable table_;
  std::vector<TensorInfo> tensors_;
  std::map<std::string, std::string> metadata_;
};

}  // namespace scaletrain::format
