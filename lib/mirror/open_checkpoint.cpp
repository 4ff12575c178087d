#include "lib/mirror/open_checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "lib/core/error.h"
#include "lib/format/checkpoint/checkpoint_folder_manifest.h"
#include "lib/format/checkpoint/checkpoint_folder_names.h"
#include "lib/format/hashed_file.h"

namespace scaletrain::mirror {

OpenCheckpoint::OpenCheckpoint(std::filesystem::path folder)
    : folder_(std::move(folder)),
      manifest_(format::read_manifest(folder_)),
      manifest_text_(format::render_manifest(manifest_)) {
  for (const auto& [name, entry] : manifest_.files) {
    const format::ByteReader& reader = files_.try_emplace(name, folder_ / name).first->second;
    if (reader.bytes() == entry.bytes) continue;
    throw core::CheckpointError(
        (folder_ / name).string(),
        fmt::format("has {} bytes, its manifest says {}", reader.bytes(), entry.bytes),
        format::kOtherCheckpoint);
  }
}

std::int64_t OpenCheckpoint::bytes() const {
  std::int64_t sum = 0;
  for (const auto& [name, entry] : manifest_.files) sum += entry.bytes;
  return sum;
}

void OpenCheckpoint::read(const std::string& name,
                          const std::function<void(std::span<const std::byte>)>& take) const {
  const format::FileEntry& listed = manifest_.files.at(name);
  const format::ByteReader& reader = file(name);
  format::Summer summer(listed.kind);
  std::vector<std::byte> buffer(static_cast<std::size_t>(std::min(kPieceBytes, reader.bytes())));
  for (std::int64_t at = 0; at < reader.bytes();) {
    const auto piece = std::span(buffer).first(
        static_cast<std::size_t>(std::min(kPieceBytes, reader.bytes() - at)));
    reader.read(at, piece);
    summer.update(piece);
    take(piece);
    at += std::ssize(piece);
  }
  format::require_sum((folder_ / name).string(), summer.finish(), listed);
}

}  // namespace scaletrain::mirror
