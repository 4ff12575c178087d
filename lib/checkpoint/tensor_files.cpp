#include "lib/checkpoint/tensor_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "lib/core/error.h"
#include "lib/format/safetensors/safetensors.h"

namespace scaletrain::checkpoint {
namespace {

namespace fs = std::filesystem;

using Kind = TensorFile::Kind;

// Adds the shards of `file` to the table of its tensors.
void add_to_table(const TensorFile& file, format::PieceTable& table) {
  for (const auto& [name, shard] : file.shards) {
    if (!shard.is_here()) continue;
    if (shard.slices.size() > 1 || shard.tensor.numel() != shard.count()) {
      throw core::InternalError(
          "a share of a checkpoint",
          fmt::format("{} has {} elements in {} slices, which have {}", name, shard.tensor.numel(),
                      shard.slices.size(), shard.count()));
    }
    format::CutTensor& entry = table[name];
    entry.dtype = dtype_name(name, shard.tensor.scalar_type());
    entry.shape = shard.shape;
    if (shard.count() > 0) {
      entry.pieces.push_back({.piece = shard.slices.front(), .file = file.part});
    }
  }
}

// Sets the offsets of the pieces in a file that was written.
void note_offsets(const fs::path& path, format::PieceTable& table) {
  const format::SafetensorsFile written(path);
  for (const format::TensorInfo& info : written.tensors()) {
    for (auto& piece : table.at(info.name).pieces) {
      if (piece.file == path.filename()) piece.offset = info.begin;
    }
  }
}

// Shards with elements, if the file is this rank's part.
units::Shards shards_to_write(const TensorFile& file) {
  units::Shards shards = file.shards;
  if (!file.part.empty()) {
    std::erase_if(shards, [](const auto& one) { return one.second.count() == 0; });
  }
  return shards;
}

}  // namespace

TensorFiles::TensorFiles(const Contents& contents, KeptFiles* kept)
    : step_(contents.state.step), kept_(kept) {
  for (const TensorFile& file : contents.files) add(file);
  bytes_ = std::max<std::int64_t>(bytes_, 0);  // headers are linked too
}

void TensorFiles::add(const TensorFile& file) {
  const bool is_part = !file.part.empty();
  File& added =
      files_.emplace_back(File{.of = &file, .tensors = HostTensors(shards_to_write(file))});
  bytes_ += is_part ? file.bytes_of_all : added.tensors.bytes();
  if (file.kind == Kind::kWeights) {
    added.tensors.refuse(format::NotFinite::kNanOrInfinite, step_);
  } else if (file.kind == Kind::kOptimizer) {
    added.tensors.refuse(format::NotFinite::kNan, step_);
  }
  if (!is_part) return;
  format::PieceTable& table = tables_[file.name];
  add_to_table(file, table);
  added.links = kept_ != nullptr && file.kind != Kind::kPerRank;
  if (!added.links) return;
  added.sums = added.tensors.sums();
  bytes_ -= kept_->linkable_bytes(file.name, table, added.sums);
}

format::FolderFiles TensorFiles::write(core::Disk& disk, const fs::path& folder) const {
  format::FolderFiles written({}, tables_);
  if (kept_ != nullptr) kept_->begin();
  for (const File& file : files_) {
    const bool is_part = !file.of->part.empty();
    const bool may_be_empty = !is_part && file.of->kind != Kind::kPerRank;
    if (file.tensors.bytes() == 0 && !may_be_empty) continue;
    if (file.links) {
      kept_->write(disk, folder, file.of->name, file.tensors, file.sums, step_, written);
      continue;
    }
    const std::string& name = is_part ? file.of->part : file.of->name;
    written.files[name] = file.tensors.write(disk, folder / name, step_);
    if (is_part) note_offsets(folder / name, written.tensors.at(file.of->name));
  }
  return written;
}

}  // namespace scaletrain::checkpoint
