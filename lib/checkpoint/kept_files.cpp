#include "lib/checkpoint/kept_files.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <utility>

#include "lib/core/error.h"
#include "lib/core/log.h"
#include "lib/format/safetensors/safetensors.h"

namespace scaletrain::checkpoint {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kNsPerSecond = 1'000'000'000;

// "model-00001-of-00002.safetensors" -> "model-00001-of-00002-kept-3.safetensors".
std::string kept_name(const std::string& file, std::int64_t number) {
  const fs::path path(file);
  return fmt::format("{}-kept-{}{}", path.stem().string(), number, path.extension().string());
}

// The file of pieces that the table of a share names.
std::string plain_name(const format::PieceTable& table) {
  for (const auto& [name, tensor] : table) {
    if (!tensor.pieces.empty()) return tensor.pieces.front().file;
  }
  throw core::InternalError("KeptFiles::write", "a table without pieces");
}

}  // namespace

std::optional<KeptFiles::Identity> KeptFiles::identity_of(const fs::path& path) {
  struct stat status = {};
  if (::stat(path.c_str(), &status) != 0) return std::nullopt;
  return Identity{.device = status.st_dev,
                  .number = status.st_ino,
                  .bytes = status.st_size,
                  .mtime_ns = status.st_mtim.tv_sec * kNsPerSecond + status.st_mtim.tv_nsec};
}

bool KeptFiles::is_same(const std::string& name, const Stored& stored,
                        const format::PieceTable& table, const TensorSums& sums) {
  const auto now = table.find(name);
  const auto sum = sums.find(name);
  return now != table.end() && sum != sums.end() && sum->second == stored.sum &&
         now->second.dtype == stored.tensor.dtype && now->second.shape == stored.tensor.shape &&
         !now->second.pieces.empty() &&
         now->second.pieces.front().piece == stored.tensor.pieces.front().piece;
}

bool KeptFiles::is_same(const File& file, const format::PieceTable& table, const TensorSums& sums) {
  return std::ranges::all_of(
      file.tensors, [&](const auto& one) { return is_same(one.first, one.second, table, sums); });
}

const KeptFiles::Files& KeptFiles::last_of(const std::string& whole) const {
  static const Files kNone;
  const auto found = last_.find(whole);
  return found == last_.end() ? kNone : found->second;
}

std::set<std::string> KeptFiles::unchanged(const std::string& whole,
                                           const format::PieceTable& table,
                                           const TensorSums& sums) const {
  std::set<std::string> names;
  for (const auto& [path, file] : last_of(whole)) {
    for (const auto& [name, stored] : file.tensors) {
      if (is_same(name, stored, table, sums)) names.insert(name);
    }
  }
  return names;
}

void KeptFiles::published(const fs::path& checkpoint) {
  folder_ = checkpoint;
  last_ = std::exchange(next_, {});
}

std::int64_t KeptFiles::linkable_bytes(const std::string& whole, const format::PieceTable& table,
                                       const TensorSums& sums) const {
  std::int64_t bytes = 0;
  for (const auto& [path, file] : last_of(whole)) {
    if (file.is_kept && is_same(file, table, sums)) bytes += file.entry.bytes;
  }
  return bytes;
}

void KeptFiles::write(core::Disk& disk, const fs::path& folder, const std::string& whole,
                      const HostTensors& tensors, const TensorSums& sums, std::int64_t step,
                      format::FolderFiles& written) {
  format::PieceTable& table = written.tensors.at(whole);
  const std::string plain = plain_name(table);
  const std::set<std::string> same = unchanged(whole, table, sums);
  std::set<std::string> linked;
  for (const auto& [name, file] : last_of(whole)) {
    const bool is_linked =
        file.is_kept && is_same(file, table, sums) && link(disk, folder / name, file);
    if (!is_linked) continue;
    written.files[name] = file.entry;
    next_[whole][name] = file;
    for (const auto& [tensor, stored] : file.tensors) {
      table.at(tensor).pieces = stored.tensor.pieces;
      linked.insert(tensor);
    }
  }
  std::set<std::string> keep, change;
  for (const auto& [name, sum] : sums) {
    if (!linked.contains(name)) (same.contains(name) ? keep : change).insert(name);
  }
  // A file that several saves may share does not record a step.
  if (!keep.empty()) {
    const fs::path path = folder / kept_name(plain, ++kept_);
    write_file(disk, path, whole, tensors.only(keep), sums, std::nullopt, written);
    next_[whole].at(path.filename()).is_kept = true;
  }
  if (!change.empty()) {
    write_file(disk, folder / plain, whole, tensors.only(change), sums, step, written);
  }
}

bool KeptFiles::link(core::Disk& disk, const fs::path& path, const File& file) {
  try {
    const fs::path from = folder_ / path.filename();
    disk.link_file(from, path);
    if (identity_of(path) == file.identity) return true;
    disk.remove_all(path);
    throw core::StorageError(from.string(), "is another file than the one that was written", "");
  } catch (const core::StorageError& error) {
    if (!std::exchange(has_warned_, true)) {
      core::warn("{}: {}; unchanged tensors are written again", error.place(), error.found());
    }
    return false;
  }
}

void KeptFiles::write_file(core::Disk& disk, const fs::path& path, const std::string& whole,
                           const HostTensors& tensors, const TensorSums& sums,
                           std::optional<std::int64_t> step, format::FolderFiles& written) {
  const std::string name = path.filename();
  File file;
  file.entry = written.files[name] = tensors.write(disk, path, step);
  file.identity = identity_of(path).value_or(Identity());
  const format::SafetensorsFile stored(path);
  for (const format::TensorInfo& info : stored.tensors()) {
    format::CutTensor& tensor = written.tensors.at(whole).at(info.name);
    tensor.pieces.front().file = name;
    tensor.pieces.front().offset = info.begin;
    file.tensors[info.name] = {.tensor = tensor, .sum = sums.at(info.name)};
  }
  next_[whole][name] = std::move(file);
}

}  // namespace scaletrain::checkpoint
