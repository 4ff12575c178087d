#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "lib/core/error.h"
#include "lib/core/printable.h"
#include "lib/format/checkpoint/checkpoint_folder_names.h"
#include "lib/format/checkpoint/piece_table.h"
#include "lib/format/safetensors/safetensors_header.h"

namespace scaletrain::format {
namespace {

constexpr std::size_t kMostPieces = 4096;  // per tensor: more than the ranks that share one
constexpr std::int64_t kLeastOffset = 8;   // size of the length in front of a safetensors header

// Returns the bytes of a tensor; -1 if they exceed 64 bits or the dtype is unknown.
std::int64_t bytes_of_cut(const CutTensor& tensor) {
  std::int64_t bytes = dtype_bytes(tensor.dtype);
  if (bytes == 0) return -1;
  for (const std::int64_t dimension : tensor.shape) {
    if (__builtin_mul_overflow(bytes, dimension, &bytes)) return -1;
  }
  return bytes;
}

bool lies_within(const Piece& piece, const std::vector<std::int64_t>& shape) {
  if (piece.begin.size() != shape.size() || piece.size.size() != shape.size()) return false;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (piece.begin[d] > shape[d] || piece.size[d] > shape[d] - piece.begin[d]) return false;
  }
  return piece.first < piece.last && piece.last <= element_count(piece.size);
}

bool boxes_meet(const Piece& a, const Piece& b) {
  for (std::size_t d = 0; d < a.begin.size(); ++d) {
    if (a.begin[d] + a.size[d] <= b.begin[d] || b.begin[d] + b.size[d] <= a.begin[d]) return false;
  }
  return true;
}

using Pieces = std::vector<const StoredPiece*>;

// Returns two pieces with a common element; {nullptr, nullptr} if there are none.
std::pair<const StoredPiece*, const StoredPiece*> find_twice(const CutTensor& tensor) {
  std::map<std::pair<std::vector<std::int64_t>, std::vector<std::int64_t>>, Pieces> boxes;
  for (const StoredPiece& stored : tensor.pieces) {
    boxes[{stored.piece.begin, stored.piece.size}].push_back(&stored);
  }
  // Ranges within one box, as ZeRO makes them, are compared only with their neighbours.
  for (auto& [box, ranges] : boxes) {
    std::sort(ranges.begin(), ranges.end(), [](const StoredPiece* a, const StoredPiece* b) {
      return a->piece.first < b->piece.first;
    });
    const auto twice = std::adjacent_find(
        ranges.begin(), ranges.end(),
        [](const StoredPiece* a, const StoredPiece* b) { return a->piece.last > b->piece.first; });
    if (twice != ranges.end()) return {*twice, *std::next(twice)};
  }
  for (auto one = boxes.begin(); one != boxes.end(); ++one) {
    for (auto other = std::next(one); other != boxes.end(); ++other) {
      if (!boxes_meet(one->second.front()->piece, other->second.front()->piece)) continue;
      for (const StoredPiece* a : one->second) {
        for (const StoredPiece* b : other->second) {
          if (overlaps(a->piece, b->piece)) return {a, b};
        }
      }
    }
  }
  return {nullptr, nullptr};
}

// Returns the problem with the shards of a tensor; "" if there is none.
std::string problem_of(const CutTensor& tensor, const std::map<std::string, FileEntry>& files) {
  constexpr std::size_t kMostDimensions = 64;
  if (bytes_of_cut(tensor) < 0 || tensor.shape.size() > kMostDimensions) {
    return fmt::format("is of dtype \"{}\" and a shape that no file can hold",
                       core::printable(tensor.dtype));
  }
  if (tensor.pieces.size() > kMostPieces) {
    return fmt::format("has {} pieces, where at most {} are possible", tensor.pieces.size(),
                       kMostPieces);
  }
  const std::int64_t elements = element_count(tensor.shape);
  std::int64_t held = 0;
  std::set<std::string> named;
  for (const StoredPiece& stored : tensor.pieces) {
    const std::string name = core::printable(stored.file);
    if (!lies_within(stored.piece, tensor.shape)) {
      return fmt::format("has a piece in {} that does not lie within it", name);
    }
    if (!named.insert(stored.file).second) return fmt::format("has two pieces in {}", name);
    const auto file = files.find(stored.file);
    if (file == files.end()) return fmt::format("has a piece in {}, which is not listed", name);
    const std::int64_t bytes = stored.piece.count() * dtype_bytes(tensor.dtype);
    if (stored.offset < kLeastOffset || bytes > file->second.bytes - stored.offset) {
      return fmt::format("has {} bytes from byte {} of {} on, which has {}", bytes, stored.offset,
                         name, file->second.bytes);
    }
    if (stored.piece.count() > elements - held) return "has an element in two pieces";
    held += stored.piece.count();
  }
  if (const auto [a, b] = find_twice(tensor); a != nullptr) {
    return fmt::format("has an element in two pieces, in {} and in {}", core::printable(a->file),
                       core::printable(b->file));
  }
  if (held == elements) return "";
  return fmt::format("has {} elements, and its pieces {}", elements, held);
}

}  // namespace

void check_tables(const PieceTables& tables, const std::map<std::string, FileEntry>& files,
                  const std::string& place) {
  const auto refuse = [&](const std::string& what) {
    throw core::CheckpointError(place, what, kOtherCheckpoint);
  };
  std::map<std::string, std::string> table_of;  // keyed by file
  for (const auto& [whole, table] : tables) {
    const std::string shown = core::printable(whole);
    if (!is_plain_name(whole)) refuse(fmt::format("names the file \"{}\"", shown));
    if (files.contains(whole)) refuse(fmt::format("has {} both whole and in pieces", shown));
    for (const auto& [name, tensor] : table) {
      const std::string problem = problem_of(tensor, files);
      if (!problem.empty()) {
        refuse(fmt::format("the tensor \"{}\" of {} {}", core::printable(name), shown, problem));
      }
      for (const StoredPiece& stored : tensor.pieces) {
        const std::string& first = table_of.emplace(stored.file, whole).first->second;
        if (first == whole) continue;
        refuse(fmt::format("has pieces of {} and of {} in {}", core::printable(first), shown,
                           core::printable(stored.file)));
      }
    }
  }
}

}  // namespace scaletrain::format
