#include "lib/mirror/fetch.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "lib/core/disk/temporary_name.h"
#include "lib/core/error.h"
#include "lib/core/text/url.h"
#include "lib/format/checkpoint/checkpoint_folder.h"
#include "lib/format/checkpoint/checkpoint_folder_copy.h"
#include "lib/format/checkpoint/checkpoint_folder_manifest.h"
#include "lib/format/checkpoint/checkpoint_folder_names.h"
#include "lib/mirror/place.h"

namespace scaletrain::mirror {
namespace {

namespace fs = std::filesystem;

std::string file_of(const Copy& copy, const std::string& name) {
  return fmt::format("{}/{}", copy.url, name);
}

// Reads the copy's manifest through a temporary folder, since read_manifest() needs a folder.
format::Manifest manifest_of(core::Disk& disk, const storage::Storage& storage, const Copy& copy,
                             const fs::path& checkpoints) {
  const std::string url = file_of(copy, format::kManifestName);
  const auto text = storage::read_if_there(storage, url, kMaxManifestBytes);
  if (!text) {
    throw core::CheckpointError(core::shown_path(url), "is missing: the copy was not finished",
                                format::kOtherCheckpoint);
  }
  const fs::path folder = checkpoints / core::temporary_name("copy");
  disk.make_folders(folder);
  disk.create(folder / format::kManifestName)->write(std::as_bytes(std::span(*text)));
  try {
    format::Manifest manifest = format::read_manifest(folder);
    disk.remove_all(folder);
    if (manifest.step == copy.step) return manifest;
    throw core::CheckpointError(core::shown_path(url), fmt::format("is of step {}", manifest.step),
                                format::kOtherCheckpoint);
  } catch (const core::CheckpointError& error) {
    disk.remove_all(folder);
    throw core::CheckpointError(core::shown_path(url), error.found(), error.remedy());
  }
}

void fetch_file(core::Disk& disk, const storage::Storage& storage, const std::string& url,
                const fs::path& to, const format::FileEntry& listed) {
  format::HashedFile file(disk, to, listed.bytes, listed.kind);
  const auto stream = storage.stream(url);
  std::vector<std::byte> buffer(static_cast<std::size_t>(kPieceBytes));
  std::int64_t left = listed.bytes;
  while (const std::size_t got = stream->read(buffer)) {
    left -= static_cast<std::int64_t>(got);
    if (left < 0) break;
    file.write(std::span(buffer).first(got));
  }
  const format::FileEntry found = file.finish();
  if (left != 0) {
    throw core::CheckpointError(
        core::shown_path(url),
        fmt::format("does not have the {} bytes of its manifest", listed.bytes),
        format::kOtherCheckpoint);
  }
  format::require_sum(core::shown_path(url), found, listed);
}

Fetched fetch(core::Disk& disk, const storage::Storage& storage, const Copy& copy,
              const fs::path& checkpoints) {
  const format::Manifest manifest = manifest_of(disk, storage, copy, checkpoints);
  Fetched fetched{.step = copy.step};
  for (const auto& [name, entry] : manifest.files) fetched.bytes += entry.bytes;
  fetched.checkpoint = format::publish_copy(
      disk, checkpoints, manifest, [&](const std::string& name, const fs::path& to) {
        fetch_file(disk, storage, file_of(copy, name), to, manifest.files.at(name));
      });
  return fetched;
}

}  // namespace

std::vector<Copy> list_copies(const storage::Storage& storage, const std::string& place) {
  const std::string folder = checkpoints_of(place);
  std::vector<storage::Storage::Entry> entries;
  try {
    entries = storage.list(folder);
  } catch (const storage::AbsentError&) {  // normal on a disk, but a bucket must exist
    if (core::is_url(place)) throw;
  }
  std::vector<Copy> copies;
  copies.reserve(entries.size());
  for (const storage::Storage::Entry& entry : entries) {
    const auto step = entry.folder ? format::step_of_name(entry.name) : std::nullopt;
    if (step) copies.push_back({*step, fmt::format("{}/{}", folder, entry.name)});
  }
  std::stable_sort(copies.begin(), copies.end(),
                   [](const Copy& a, const Copy& b) { return a.step > b.step; });
  return copies;
}

std::optional<Fetched> fetch_newest(core::Disk& disk, const storage::Storage& storage,
                                    const std::string& place, const fs::path& checkpoints,
                                    std::int64_t beyond,
                                    const std::function<void(const std::string&)>& report) {
  for (const Copy& copy : list_copies(storage, place)) {
    if (copy.step <= beyond) break;
    try {
      return fetch(disk, storage, copy, checkpoints);
    } catch (const core::Error& error) {
      if (error.exit_code() != core::ExitCode::kData) throw;
      disk.remove_all(checkpoints / core::temporary_name(format::checkpoint_name(copy.step)));
      report(error.what());
    }
  }
  return std::nullopt;
}

}  // namespace scaletrain::mirror
