#include "lib/format/checkpoint/stored_tensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <system_error>
#include <utility>

#include "lib/core/disk/read_faults.h"
#include "lib/core/error.h"
#include "lib/core/log.h"
#include "lib/core/printable.h"
#include "lib/format/byte_reader.h"
#include "lib/format/checkpoint/checkpoint_folder.h"
#include "lib/format/checkpoint/checkpoint_folder_names.h"

namespace scaletrain::format {
namespace {

namespace fs = std::filesystem;

// False for an inaccessible file: reading it reports why.
bool is_absent(const fs::path& path) {
  std::error_code unknown;
  return fs::status(path, unknown).type() == fs::file_type::not_found;
}

// Returns the pieces of a file that exists only in pieces; nullopt if the folder's manifest has no
// table for it.
std::optional<PieceTable> table_for(const fs::path& path) {
  const fs::path folder = path.parent_path();
  if (core::type_at(folder / kManifestName) != fs::file_type::regular) return std::nullopt;
  Manifest manifest = read_manifest(folder);
  const auto found = manifest.tensors.find(path.filename().string());
  return found == manifest.tensors.end() ? std::nullopt : std::optional(std::move(found->second));
}

// The pieces of each file by the names of their tensors.
using NamedPieces = std::map<std::string, std::pair<const CutTensor*, const StoredPiece*>>;

std::map<std::string, NamedPieces> by_file(const PieceTable& table) {
  std::map<std::string, NamedPieces> files;
  for (const auto& [name, tensor] : table) {
    for (const StoredPiece& stored : tensor.pieces) files[stored.file][name] = {&tensor, &stored};
  }
  return files;
}

// Checks that a file of shards matches the manifest.
void compare_with_table(const fs::path& path, const SafetensorsFile& file,
                        const NamedPieces& pieces) {
  for (const TensorInfo& info : file.tensors()) {
    const auto found = pieces.find(info.name);
    const auto fits = [&] {
      const auto& [tensor, stored] = found->second;
      return info.dtype == tensor->dtype && info.begin == stored->offset &&
             info.end - info.begin == stored->piece.count() * dtype_bytes(info.dtype);
    };
    if (found != pieces.end() && fits()) continue;
    throw core::CheckpointError(path.string(),
                                fmt::format("holds a tensor \"{}\" that is not the piece in {}",
                                            core::printable(info.name), kManifestName),
                                kOtherCheckpoint);
  }
  if (file.tensors().size() == pieces.size()) return;
  throw core::CheckpointError(path.string(),
                              fmt::format("holds {} of the {} pieces that {} says",
                                          file.tensors().size(), pieces.size(), kManifestName),
                              kOtherCheckpoint);
}

// True if files of shards can belong to one save by their metadata: files of tensors that several
// saves share do not note a step.
using Metadata = std::map<std::string, std::string>;
bool may_be_together(Metadata one, Metadata other) {
  const std::string step = "step";
  if (one.contains(step) != other.contains(step)) {
    one.erase(step);
    other.erase(step);
  }
  return one == other;
}

// Reads bytes from a byte of a tensor's or piece's own on.
using Source = std::function<void(std::int64_t begin, std::span<std::byte> out)>;

// Copies the elements shared by `from`, which `source` reads, and `to` into `out`, the bytes of
// `to`.
class SharedReader {
 public:
  SharedReader(Source source, std::int64_t element_bytes, std::span<std::byte> out)
      : source_(std::move(source)), element_bytes_(element_bytes), out_(out) {}

  void read(const Piece& from, const Piece& to) {
    for_each_overlap(from, to, [this](const Overlap& run) { add(run); });
    flush();
  }

 private:
  // Runs that are close to each other, such as those of columns, are read with one call.
  void add(const Overlap& run) {
    constexpr std::int64_t kMostBetween = 64 << 10, kMost = 1 << 20;  // bytes
    if (!runs_.empty()) {
      const std::int64_t end = runs_.back().from + runs_.back().count;
      const std::int64_t all = run.from + run.count - runs_.front().from;
      if ((run.from - end) * element_bytes_ > kMostBetween || all * element_bytes_ > kMost) flush();
    }
    runs_.push_back(run);
  }

  void flush() {
    if (runs_.empty()) return;
    const std::int64_t begin = runs_.front().from;
    if (runs_.size() == 1) {
      source_(begin * element_bytes_, target(runs_.front()));
    } else {
      block_.resize(static_cast<std::size_t>((runs_.back().from + runs_.back().count - begin) *
                                             element_bytes_));
      source_(begin * element_bytes_, block_);
      for (const Overlap& run : runs_) {
        const std::span<std::byte> to = target(run);
        std::memcpy(to.data(), block_.data() + (run.from - begin) * element_bytes_, to.size());
      }
    }
    runs_.clear();
  }

  std::span<std::byte> target(const Overlap& run) const {
    return out_.subspan(static_cast<std::size_t>(run.to * element_bytes_),
                        static_cast<std::size_t>(run.count * element_bytes_));
  }

  Source source_;
  std::int64_t element_bytes_;
  std::span<std::byte> out_;
  std::vector<Overlap> runs_;
  std::vector<std::byte> block_;
};

}  // namespace

bool has_tensors(const fs::path& path) {
  return core::type_at(path) != fs::file_type::not_found || table_for(path).has_value();
}

StoredTensors::StoredTensors(const fs::path& path) {
  std::optional<PieceTable> table;
  if (is_absent(path)) table = table_for(path);
  if (table) {
    open_pieces(path, std::move(*table));
    return;
  }
  whole_.emplace(path);
  tensors_ = whole_->tensors();
  metadata_ = whole_->metadata();
}

void StoredTensors::open_pieces(const fs::path& path, PieceTable table) {
  folder_ = path.parent_path();
  table_ = std::move(table);
  std::string first;
  for (const auto& [name, pieces] : by_file(table_)) {
    const SafetensorsFile file(folder_ / name);
    compare_with_table(folder_ / name, file, pieces);
    if (!first.empty() && !may_be_together(file.metadata(), metadata_)) {
      throw core::CheckpointError(
          (folder_ / name).string(),
          fmt::format("has other metadata than {}: it is of another save", first),
          kOtherCheckpoint);
    }
    // Keeps the first metadata, but prefers one with a step over one without.
    if (first.empty() || file.metadata().size() > metadata_.size()) {
      first = name;
      metadata_ = file.metadata();
    }
  }
  tensors_.reserve(table_.size());
  for (const auto& [name, tensor] : table_) {
    tensors_.push_back({.name = name,
                        .dtype = tensor.dtype,
                        .shape = tensor.shape,
                        .begin = 0,
                        .end = element_count(tensor.shape) * dtype_bytes(tensor.dtype)});
  }
}

void StoredTensors::read(const TensorInfo& tensor, std::span<std::byte> out,
                         std::int64_t offset) const {
  if (whole_) return whole_->read(tensor, out, offset);
  const std::int64_t element_bytes = dtype_bytes(tensor.dtype);
  const auto bytes = static_cast<std::int64_t>(out.size());
  read(tensor, range_piece(tensor.shape, offset / element_bytes, (offset + bytes) / element_bytes),
       out);
}

void StoredTensors::read(const TensorInfo& tensor, const Piece& wanted,
                         std::span<std::byte> out) const {
  const std::int64_t element_bytes = dtype_bytes(tensor.dtype);
  const bool fits = wanted.first >= 0 && wanted.last <= element_count(wanted.size) &&
                    wanted.begin.size() == tensor.shape.size() &&
                    wanted.count() * element_bytes == std::ssize(out);
  if (!fits) {
    throw core::InternalError("StoredTensors::read",
                              fmt::format("{} bytes for {} elements of tensor \"{}\"", out.size(),
                                          wanted.count(), tensor.name));
  }
  if (whole_) {
    const Source source = [&](std::int64_t begin, std::span<std::byte> to) {
      whole_->read(tensor, to, begin);
    };
    return SharedReader(source, element_bytes, out).read(whole_piece(tensor.shape), wanted);
  }
  for (const StoredPiece& stored : table_.at(tensor.name).pieces) {
    if (!overlaps(stored.piece, wanted)) continue;
    const ByteReader file(folder_ / stored.file);
    const Source source = [&](std::int64_t begin, std::span<std::byte> to) {
      file.read(stored.offset + begin, to);
    };
    SharedReader(source, element_bytes, out).read(stored.piece, wanted);
  }
}

}  // namespace scaletrain::format
