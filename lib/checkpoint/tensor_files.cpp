#include "lib/checkpoint/tensor_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "lib/format/checkpoint/checkpoint_folder_names.h"
#include "lib/format/checkpoint/checkpoint_weights.h"
#include "lib/format/safetensors/safetensors.h"

namespace scaletrain::checkpoint {
namespace {

namespace fs = std::filesystem;

// Returns the offsets at which a table's pieces begin in their tensors.
std::map<std::string, std::int64_t> firsts_of(const format::PieceTables& tables,
                                              const std::string& file) {
  std::map<std::string, std::int64_t> firsts;
  const auto table = tables.find(file);
  if (table == tables.end()) return firsts;
  for (const auto& [name, tensor] : table->second) {
    if (!tensor.pieces.empty()) firsts[name] = tensor.pieces.front().piece.first;
  }
  return firsts;
}

// The file of pieces that a share's table names; "" where the share has none of it.
std::string file_of(const format::PieceTable& table) {
  for (const auto& [name, tensor] : table) {
    if (!tensor.pieces.empty()) return tensor.pieces.front().file;
  }
  return "";
}

// Notes the offsets of the pieces in their file, which was written.
void note_offsets(const fs::path& path, format::PieceTable& table) {
  const format::SafetensorsFile written(path);
  for (const format::TensorInfo& info : written.tensors()) {
    for (auto& piece : table.at(info.name).pieces) {
      if (piece.file == path.filename()) piece.offset = info.begin;
    }
  }
}

}  // namespace

std::string buffers_beside(const fs::path& mean) {
  return fmt::format("{}_{}", mean.stem().string(), kBuffers);
}

TensorFiles::TensorFiles(const Contents& contents, KeptFiles* kept)
    : contents_(contents), kept_(kept), bytes_(contents.all_bytes) {
  add(format::kModelFile, contents.model, format::NotFinite::kNanOrInfinite);
  add(format::kOptimizerFile, contents.optimizer, format::NotFinite::kNan);
  add(kBuffers, contents.buffers);
  if (contents.own_rows.empty()) add(kRanks, contents.ranks);
  for (const OwnRows& rows : contents.own_rows) {
    add(kRanks, rows.tensors);
    files_.back().pieces = rows.file;
  }
  for (const auto& [name, mean] : contents.means) {
    const std::string file = format::mean_file(name);
    add(file, mean.tensors, format::NotFinite::kNanOrInfinite);
    add(buffers_beside(file), mean.buffers);
  }
  if (kept == nullptr) return;
  for (File& file : files_) {
    const auto table = contents.pieces.find(file.name);
    if (table == contents.pieces.end() || !file.pieces.empty()) continue;
    file.sums = file.tensors.sums();
    bytes_ -= kept->linkable_bytes(file.name, table->second, file.sums);
  }
  bytes_ = std::max<std::int64_t>(bytes_, 0);  // headers are linked too
}

void TensorFiles::add(std::string name, const Tensors& tensors) {
  HostTensors host(tensors);
  // The bytes of a share are counted already.
  if (!contents_.pieces.contains(name)) bytes_ += host.bytes();
  files_.push_back({std::move(name), std::move(host)});
}

void TensorFiles::add(std::string name, const Tensors& tensors, format::NotFinite refused) {
  std::map<std::string, std::int64_t> firsts = firsts_of(contents_.pieces, name);
  add(std::move(name), tensors);
  files_.back().tensors.refuse(refused, contents_.state.step, std::move(firsts));
}

format::FolderFiles TensorFiles::write(core::Disk& disk, const fs::path& folder) const {
  const std::int64_t step = contents_.state.step;
  format::FolderFiles written({}, contents_.pieces);
  if (kept_ != nullptr) kept_->begin();
  for (const File& file : files_) {
    const auto table = written.tensors.find(file.name);
    const bool is_cut = table != written.tensors.end();
    const std::string own = file.pieces.empty() && is_cut ? file_of(table->second) : file.pieces;
    const std::string name = is_cut ? own : file.name;
    const bool is_always_there =
        !contents_.is_share && (name == format::kModelFile || name == format::kOptimizerFile);
    if (name.empty() || (file.tensors.bytes() == 0 && !is_always_there)) continue;
    if (kept_ != nullptr && is_cut && file.pieces.empty()) {
      kept_->write(disk, folder, file.name, file.tensors, file.sums, step, written);
      continue;
    }
    written.files[name] = file.tensors.write(disk, folder / name, step);
    if (is_cut) note_offsets(folder / name, table->second);
  }
  return written;
}

}  // namespace scaletrain::checkpoint
