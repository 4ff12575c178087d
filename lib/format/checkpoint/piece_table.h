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
  std::vector<std::int64_t> shape;  // the whole tensor's
  std::vector<StoredPiece> pieces = {};
};

using PieceTable = std::map<std::string, CutTensor>;    // keyed by tensor name
using PieceTables = std::map<std::string, PieceTable>;  // keyed by the file they replace

// JSON, a line for each tensor.
std::string render_tables(const PieceTables& tables);

// Parses the JSON of render_tables. Throws core::CheckpointError naming `place`, the manifest, and
// the first problem, as check_tables does.
PieceTables parse_tables(const nlohmann::json& json, const std::string& place);

// Checks that the pieces of each tensor hold each of its elements once, in files of `files`, whose
// bytes they do not exceed; a file has one piece of a tensor at most, and belongs to one table.
// Throws core::CheckpointError naming `place` and the first tensor of which that is not true.
void check_tables(const PieceTables& tables, const std::map<std::string, FileEntry>& files,
                  const std::string& place);

// Adds the pieces of `more`, which another rank wrote. Throws core::InternalError where a tensor
// has another dtype or shape there.
void merge_tables(PieceTables& tables, const PieceTables& more);

}  // namespace scaletrain::format
