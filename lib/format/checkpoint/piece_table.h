// Table of the shards, and their files, of each tensor of a sharded checkpoint: the key "tensors"
// of its manifest (docs/reference/formats/checkpoint.md).
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "lib/format/checkpoint/piece.h"
#include "lib/format/hashed_file.h"

namespace scaletrain::format {

struct StoredPiece {
  Piece piece;
  std::string file;         // safetensors, in the checkpoint's folder
  std::int64_t offset = 0;  // offset of its first byte, from the start of the file
};

struct CutTensor {
  std::string dtype;
  std::vector<std::int64_t> shape;  // shape of the full tensor
  std::vector<StoredPiece> pieces = {};
};

using PieceTable = std::map<std::string, CutTensor>;    // keyed by tensor name
using PieceTables = std::map<std::string, PieceTable>;  // keyed by the file they replace

// Returns the JSON text, with a line for each tensor.
std::string render_tables(const PieceTables& tables);

// Parses the JSON of render_tables(). Throws core::CheckpointError naming `place`, the manifest,
// and the first problem, like check_tables().
PieceTables parse_tables(const nlohmann::json& json, const std::string& place);

// Checks that the pieces of each tensor cover each element exactly once and lie within the sizes of
// `files`; a file has at most one piece of a tensor and belongs to one table. Throws
// core::CheckpointError naming `place` and the first tensor that violates this.
void check_tables(const PieceTables& tables, const std::map<std::string, FileEntry>& files,
                  const std::string& place);

// Adds the pieces of `more`, which another rank wrote. Throws core::InternalError if a tensor has
// another dtype or shape in it.
void merge_tables(PieceTables& tables, const PieceTables& more);

}  // namespace scaletrain::format
