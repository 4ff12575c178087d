// The tensors of one file of a checkpoint, whether it is there whole or several ranks have written
// pieces of it.
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

// True if there are tensors at `path`: a file, or shards of it (below).
bool has_tensors(const std::filesystem::path& path);

// Several threads may read from one.
class StoredTensors {
 public:
  // `path` is a safetensors file, or one that the manifest beside it has in pieces. Throws
  // core::CheckpointError as SafetensorsFile and read_manifest do; where a file of pieces holds
  // something else than the manifest says, or pieces of another step than the first file.
  explicit StoredTensors(const std::filesystem::path& path);

  // Sorted by name; for shards, `begin` and `end` count from the tensor's first byte.
  const std::vector<TensorInfo>& tensors() const { return tensors_; }
  const std::map<std::string, std::string>& metadata() const { return metadata_; }

  // Reads the bytes of `tensor` from its byte `offset` on into `out`, all of it; both are multiples
  // of the element's size.
  void read(const TensorInfo& tensor, std::span<std::byte> out, std::int64_t offset = 0) const;

  // Reads the elements of `wanted`, a piece of `tensor`, into `out`, all of it, whatever pieces
  // they lie in: each rank reads what it needs.
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
