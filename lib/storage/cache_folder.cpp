#include "lib/storage/cache_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <nlohmann/json.hpp>
#include <thread>
#include <utility>

#include "lib/core/clock.h"
#include "lib/core/error.h"
#include "lib/core/text/hash.h"

namespace scaletrain::storage {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kBlockBytes = 1 << 20;
constexpr std::int64_t kMaxJsonBytes = 1 << 16;
constexpr std::chrono::milliseconds kLockPause{5};
constexpr double kLockPatienceS = 60;

[[noreturn]] void fail_in_folder(const fs::path& path, const std::string& what) {
  throw core::StorageError(path.string(), what, "name another folder in /data/cache/folder");
}

core::Descriptor open_to_lock(const fs::path& path) {
  core::Descriptor fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  if (!fd) fail_in_folder(path, "cannot be opened: " + core::errno_text(errno));
  return fd;
}

bool try_lock(const core::Descriptor& fd) { return ::flock(fd.get(), LOCK_EX | LOCK_NB) == 0; }

// Returns the disk space of the file; reserved blocks count.
std::int64_t bytes_on_disk(const struct stat& status) {
  return std::max<std::int64_t>(status.st_size, std::int64_t{status.st_blocks} * 512);
}

std::uint64_t chained(std::uint64_t hash, std::span<const std::byte> block) {
  return core::xxh3_64(block, hash);
}

struct Candidate {
  std::string key;
  std::int64_t bytes = 0;
  fs::file_time_type used;
};

// When an entry was used; one without its .json counts as the oldest.
fs::file_time_type used_at(const fs::path& json) {
  std::error_code absent;
  const fs::file_time_type time = fs::last_write_time(json, absent);
  return absent ? fs::file_time_type::min() : time;
}

}  // namespace

CacheFolder::CacheFolder(fs::path folder, std::int64_t max_bytes)
    : folder_(std::move(folder)), max_bytes_(max_bytes) {
  core::system_disk().make_folders(folder_);
}

std::optional<CacheEntry> CacheFolder::find(const std::string& key) const {
  std::error_code absent;
  const auto bytes = fs::file_size(data_path(key), absent);
  if (absent || !fs::exists(json_path(key), absent)) return std::nullopt;
  std::string text;
  try {
    text = core::read_file(json_path(key), kMaxJsonBytes, core::ExitCode::kStorage);
  } catch (const core::Error&) {  // removed meanwhile
    return std::nullopt;
  }
  const auto json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains("xxh3") || !json["xxh3"].is_string() ||
      !json.contains("bytes") || json["bytes"] != bytes) {
    return std::nullopt;
  }
  return CacheEntry{static_cast<std::int64_t>(bytes), json["xxh3"]};
}

bool CacheFolder::verify(const std::string& key, const CacheEntry& entry) const {
  const core::Descriptor fd(::open(data_path(key).c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return false;
  std::vector<std::byte> block(kBlockBytes);
  std::uint64_t hash = 0;
  for (std::int64_t offset = 0; offset < entry.bytes;) {
    const auto want = std::min<std::int64_t>(entry.bytes - offset, kBlockBytes);
    std::int64_t have = 0;
    while (have < want) {
      const ssize_t got = ::pread(fd.get(), block.data() + have,
                                  static_cast<std::size_t>(want - have), offset + have);
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) return false;
      have += got;
    }
    hash = chained(hash, std::span(block).first(static_cast<std::size_t>(want)));
    offset += want;
  }
  return fmt::format("{:016x}", hash) == entry.hash;
}

void CacheFolder::touch(const std::string& key) const {
  ::utimensat(AT_FDCWD, json_path(key).c_str(), nullptr, 0);
}

void CacheFolder::remove(const std::string& key) const {
  core::system_disk().remove_all(json_path(key));
  core::system_disk().remove_all(data_path(key));
}

std::int64_t CacheFolder::being_written(const std::string& key) const {
  std::error_code absent;
  const auto bytes = fs::file_size(part_path(key), absent);
  return absent ? -1 : static_cast<std::int64_t>(bytes);
}

std::int64_t CacheFolder::all_being_written() const {
  std::int64_t total = 0;
  std::error_code error;
  for (const fs::directory_entry& file : fs::directory_iterator(folder_, error)) {
    if (file.path().extension() == ".part") {
      total += std::max<std::int64_t>(0, being_written(file.path().stem()));
    }
  }
  return total;
}

std::optional<CacheFolder::Writer> CacheFolder::begin(const std::string& key,
                                                      std::int64_t bytes) const {
  core::Descriptor lock = open_to_lock(part_path(key));
  if (!try_lock(lock)) return std::nullopt;
  // Its previous writer may have published or removed it since it was opened here.
  struct stat ours {};
  struct stat named {};
  if (::fstat(lock.get(), &ours) != 0 || ::stat(part_path(key).c_str(), &named) != 0 ||
      ours.st_ino != named.st_ino) {
    return std::nullopt;
  }
  std::optional<Writer> result(Writer{});
  Writer& writer = *result;
  writer.folder_ = this;
  writer.key_ = key;
  writer.lock_ = std::move(lock);
  const core::Descriptor folder_lock = lock_folder();
  if (!make_room(bytes)) return std::nullopt;
  writer.file_ = core::system_disk().create(part_path(key), bytes);  // keeps the locked file
  return result;
}

core::Descriptor CacheFolder::lock_folder() const {
  core::Descriptor lock = open_to_lock(folder_ / "lock");
  const core::SteadyTime start = core::now();
  while (!try_lock(lock)) {
    if (core::seconds_since(start) > kLockPatienceS) {
      fail_in_folder(folder_ / "lock", "another process holds it and does not go on");
    }
    std::this_thread::sleep_for(kLockPause);
  }
  return lock;
}

void CacheFolder::keep_within_limit() const {
  const core::Descriptor folder_lock = lock_folder();
  make_room(0);
}

// Call with the folder's lock. Returns false, and removes nothing, if entries being written leave
// too little space.
bool CacheFolder::make_room(std::int64_t bytes) const {
  std::vector<Candidate> candidates;
  std::int64_t written = 0;
  std::int64_t total = bytes;
  std::error_code error;
  for (const fs::directory_entry& file : fs::directory_iterator(folder_, error)) {
    const std::string extension = file.path().extension();
    const std::string key = file.path().stem();
    struct stat status {};
    if ((extension != ".data" && extension != ".part") ||
        ::stat(file.path().c_str(), &status) != 0) {
      continue;
    }
    if (extension == ".part") {
      const core::Descriptor fd(::open(file.path().c_str(), O_RDWR | O_CLOEXEC));
      if (fd && try_lock(fd)) {  // its writer has died
        core::system_disk().remove_all(file.path());
        continue;
      }
      written += bytes_on_disk(status);
    } else {
      candidates.push_back({key, bytes_on_disk(status), used_at(json_path(key))});
    }
    total += bytes_on_disk(status);
  }
  if (error) fail_in_folder(folder_, "cannot be listed: " + error.message());
  if (written > 0 && written + bytes > max_bytes_) return false;
  std::sort(candidates.begin(), candidates.end(),
            [](const Candidate& a, const Candidate& b) { return a.used < b.used; });
  for (const Candidate& oldest : candidates) {
    if (total <= max_bytes_) break;
    remove(oldest.key);
    total -= oldest.bytes;
  }
  return true;
}

CacheFolder::Writer::~Writer() {
  if (!lock_) return;
  std::error_code ignored;
  fs::remove(folder_->part_path(key_), ignored);
}

void CacheFolder::Writer::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const auto part = bytes.first(std::min(bytes.size(), kBlockBytes - block_.size()));
    block_.insert(block_.end(), part.begin(), part.end());
    bytes = bytes.subspan(part.size());
    if (block_.size() == kBlockBytes) flush();
  }
}

void CacheFolder::Writer::flush() {
  file_->write(block_);
  hash_ = chained(hash_, block_);
  entry_.bytes += static_cast<std::int64_t>(block_.size());
  block_.clear();
}

CacheEntry CacheFolder::Writer::publish() {
  if (!block_.empty()) flush();
  file_.reset();
  core::Disk& disk = core::system_disk();
  entry_.hash = fmt::format("{:016x}", hash_);
  const fs::path json = folder_->json_path(key_);
  const fs::path new_json = folder_->folder_ / fmt::format("{}.json.new", key_);
  const std::string text =
      nlohmann::json{{"bytes", entry_.bytes}, {"xxh3", entry_.hash}}.dump() + "\n";
  disk.create(new_json)->write(std::as_bytes(std::span(text)));
  // Between the two renames other processes would find an unlocked part and data without a hash,
  // and would download one again and remove the other. They look under the same lock.
  const core::Descriptor folder_lock = folder_->lock_folder();
  disk.rename(folder_->part_path(key_), folder_->data_path(key_));
  disk.rename(new_json, json);
  lock_.reset();
  return entry_;
}

}  // namespace scaletrain::storage
