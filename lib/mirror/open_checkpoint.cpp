#include "lib/mirror/open_checkpoint.h"

#include <fmt/format.h>

#include <utility>

#include "lib/core/disk.h"
#include "lib/core/error.h"
#include "lib/format/checkpoint_folder_manifest.h"
#include "lib/format/checkpoint_folder_names.h"

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

void OpenCheckpoint::require(const std::string& name, const format::FileEntry& found) const {
  format::require_sum((folder_ / name).string(), found, manifest_.files.at(name));
}

}  // namespace scaletrain::mirror
