#include "lib/storage/cache.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <exception>
#include <iterator>
#include <span>
#include <system_error>
#include <utility>

#include "lib/core/clock.h"
#include "lib/core/error.h"
#include "lib/core/log.h"
#include "lib/core/text/compressed_name.h"
#include "lib/core/text/hash.h"
#include "lib/core/text/url.h"
#include "lib/storage/digest.h"
#include "lib/storage/unpack.h"

namespace scaletrain::storage {
namespace {

constexpr std::size_t kFetchers = 4;  // one connection does not fill a network
constexpr std::size_t kCopyBytes = 1 << 20;
constexpr int kMostDamaged = 3;  // copies with a wrong MD5
constexpr int kMostRemovals = 10;
constexpr std::chrono::milliseconds kPause{20};
constexpr std::int64_t kTouchEveryS = 10;

bool is_command(const std::string& path) { return core::url_scheme(path) == "pipe"; }

// True if the cached bytes are produced locally, so that their number is unknown beforehand.
bool is_made_here(const std::string& path) { return is_command(path) || core::is_compressed(path); }

// Returns a readable key, "train-000000.tar.0123456789abcdef". Versions of an object have different
// keys, as do its decompressed and its original form.
std::string key_of(const std::string& path, const Identity& source) {
  const std::string text =
      fmt::format("{}\n{}\n{}\n{}{}", path, source.bytes, source.mtime_ns, source.etag,
                  core::is_compressed(path) ? "\ndecompressed" : "");
  std::string name = core::tar_name(path);
  for (char& c : name) {
    const bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                          (c >= '0' && c <= '9') || c == '.' || c == '-' || c == '_';
    if (!is_plain) c = '_';
  }
  return fmt::format("{}.{:016x}", name.substr(0, 100), core::xxh3_64(text));
}

// Returns the identity of a cached command output or decompressed object.
Identity identity_of(const CacheEntry& entry) {
  return {.bytes = entry.bytes, .etag = "xxh3 " + entry.hash};
}

// Passes the bytes on and hashes them.
class HashedStream : public Stream {
 public:
  explicit HashedStream(std::unique_ptr<Stream> stream) : stream_(std::move(stream)) {}

  std::size_t read(std::span<std::byte> out) override {
    const std::size_t got = stream_->read(out);
    md5_.update(out.first(got));
    return got;
  }
  std::string md5() { return md5_.hex(); }

 private:
  std::unique_ptr<Stream> stream_;
  Md5 md5_;
};

// The object from the front; it must still be the version that was opened.
std::unique_ptr<Stream> stream_version(const Storage& origin, const std::string& path,
                                       const Identity& identity) {
  if (is_command(path)) return origin.stream(path);
  auto object = origin.open(path);
  if (object->identity() != identity) {
    throw core::DataError(core::shown_path(path), "was replaced while it was read",
                          "start again, and do not change shards while they are read");
  }
  return object->has_ranges() ? stream_of(std::move(object)) : origin.stream(path);
}

}  // namespace

// Opens the file for each read, so that a removed entry frees its space at once.
class Cache::CachedObject : public Object {
 public:
  CachedObject(Cache& cache, const Storage& origin, std::string path, Version version)
      : cache_(cache), origin_(origin), path_(std::move(path)), version_(std::move(version)) {}

  Identity identity() const override { return version_.identity; }

  void read(std::int64_t offset, std::span<std::byte> out) const override {
    cache_.check_once(origin_, path_, version_);
    for (int removals = 0;; ++removals) {
      const core::Descriptor fd(
          ::open(cache_.folder_.data_path(version_.key).c_str(), O_RDONLY | O_CLOEXEC));
      if (fd) return read_from(fd.get(), offset, out);
      if (errno != ENOENT) fail(errno);
      if (removals == kMostRemovals) {
        throw core::StorageError(core::shown_path(path_),
                                 "was removed from the cache while it was read",
                                 "raise /data/cache/max_bytes");
      }
      cache_.fetch(origin_, path_, version_);
    }
  }

 private:
  void read_from(int fd, std::int64_t offset, std::span<std::byte> out) const {
    for (std::size_t done = 0; done < out.size();) {
      const ssize_t got = ::pread(fd, out.data() + done, out.size() - done,
                                  offset + static_cast<std::int64_t>(done));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) fail(errno);
      if (got == 0) {
        throw core::DataError(core::shown_path(path_),
                              fmt::format("ends at byte {} while bytes {} to {} are read",
                                          version_.identity.bytes, offset, offset + out.size()),
                              "the object is truncated, or its index is of another one");
      }
      done += static_cast<std::size_t>(got);
    }
    const auto now =
        std::chrono::duration_cast<std::chrono::seconds>(core::now().time_since_epoch()).count();
    if (now - touched_s_ >= kTouchEveryS) {
      touched_s_ = now;
      cache_.folder_.touch(version_.key);
    }
  }

  [[noreturn]] void fail(int error) const {
    throw core::StorageError(cache_.folder_.data_path(version_.key).string(),
                             core::errno_text(error), "check the disk of /data/cache/folder");
  }

  Cache& cache_;
  const Storage& origin_;
  std::string path_;
  Version version_;
  mutable std::atomic<std::int64_t> touched_s_ = 0;
};

Cache::Cache(std::filesystem::path folder, std::int64_t max_bytes, double patience_s, int sharers)
    : folder_(std::move(folder), max_bytes),
      patience_s_(patience_s),
      most_ahead_bytes_(max_bytes / 2 / sharers) {}

Cache::~Cache() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wanted_there_.notify_all();
  for (std::thread& thread : fetchers_) thread.join();
}

std::unique_ptr<Object> Cache::open(const Storage& origin, const std::string& path) {
  const Version version = version_of(origin, path);
  if (!folder_.fits(version.identity.bytes)) return origin.open(path);
  fetch(origin, path, version);
  return std::make_unique<CachedObject>(*this, origin, path, version);
}

Cache::Version Cache::version_of(const Storage& origin, const std::string& path) {
  {
    const std::lock_guard lock(mutex_);
    const auto known = versions_.find(path);
    if (known != versions_.end()) return known->second;
  }
  Version version;
  if (!is_command(path)) version.source = origin.open(path)->identity();
  version.key = key_of(path, version.source);
  const bool is_made = is_made_here(path);
  version.identity = is_made ? identity_of(fetch(origin, path, version)) : version.source;
  const std::lock_guard lock(mutex_);
  if (is_made) largest_made_bytes_ = std::max(largest_made_bytes_, version.identity.bytes);
  return versions_[path] = version;
}

// Returns the entry, whichever process has written it.
CacheEntry Cache::fetch(const Storage& origin, const std::string& path, const Version& version) {
  core::SteadyTime progress = core::now();
  std::int64_t written = -1;
  int damaged = 0;
  while (true) {
    if (const auto entry = folder_.find(version.key)) return *entry;
    if (auto writer = folder_.begin(version.key, room_for(version))) {
      // It may have been published since we looked.
      if (const auto entry = folder_.find(version.key)) return *entry;
      if (const auto entry = copy(origin, path, version, *writer)) return *entry;
      if (++damaged == kMostDamaged) {
        throw core::StorageError(
            core::shown_path(path),
            fmt::format("came {} times with another MD5 than the server's ETag says", damaged),
            "bytes are damaged in transit: use an endpoint with https://");
      }
      core::warn("{}: damaged in transit; downloading it again", core::shown_path(path));
      continue;
    }
    if (stop_) throw core::StorageError(core::shown_path(path), "the program is ending");
    // Another process writes it, or others leave no space for it now.
    std::int64_t newest = folder_.being_written(version.key);
    if (newest < 0) newest = folder_.all_being_written();
    if (std::exchange(written, newest) != newest) progress = core::now();
    if (core::seconds_since(progress) > patience_s_) {
      throw core::StorageError(core::shown_path(path),
                               "another process downloads it and makes no progress",
                               "end that process, or name another folder in /data/cache");
    }
    std::this_thread::sleep_for(kPause);
  }
}

// nullopt when the bytes are not those that the server promised.
std::optional<CacheEntry> Cache::copy(const Storage& origin, const std::string& path,
                                      const Version& version, CacheFolder::Writer& writer) {
  HashedStream source(stream_version(origin, path, version.source));
  std::vector<std::byte> buffer(kCopyBytes);
  const auto next = [&](Stream& stream) {
    if (stop_) throw core::StorageError(core::shown_path(path), "the program is ending");
    return std::span(buffer).first(stream.read(buffer));
  };
  std::exception_ptr damage;
  if (core::is_compressed(path)) {
    try {
      const auto unpacked =
          unpack(source, core::shown_path(path),
                 {std::min(folder_.max_bytes(), kMaxUnpackedBytes),
                  "the shard is no shard, or too large: write more and smaller ones, or give the "
                  "cache more room (/data/cache/max_bytes)"});
      for (auto bytes = next(*unpacked); !bytes.empty(); bytes = next(*unpacked)) {
        writer.write(bytes);
      }
    } catch (const core::DataError&) {  // damage of the object, or only of its transfer
      damage = std::current_exception();
    }
  }
  for (auto bytes = next(source); !bytes.empty(); bytes = next(source)) {
    if (!core::is_compressed(path)) writer.write(bytes);
  }
  const std::string& promised = version.source.md5;
  if (!promised.empty() && source.md5() != promised) return std::nullopt;
  if (damage) std::rethrow_exception(damage);
  const CacheEntry entry = writer.publish();
  if (is_command(path) && !version.identity.etag.empty() &&
      version.identity != identity_of(entry)) {
    throw core::DataError(core::shown_path(path), "wrote something else than the first time",
                          "the command must write the same bytes each time it is run");
  }
  if (entry.bytes > room_for(version)) folder_.keep_within_limit();
  const std::lock_guard lock(mutex_);
  checked_.insert(version.key);
  return entry;
}

// A crash of the machine or a bad disk may have changed the files in the folder.
void Cache::check_once(const Storage& origin, const std::string& path, const Version& version) {
  {
    const std::lock_guard lock(mutex_);
    if (checked_.contains(version.key)) return;
  }
  const CacheEntry entry = fetch(origin, path, version);
  if (!folder_.verify(version.key, entry) && folder_.find(version.key) == entry) {
    core::warn("{}: is damaged; fetching it again", folder_.data_path(version.key).string());
    folder_.remove(version.key);
    fetch(origin, path, version);
  }
  const std::lock_guard lock(mutex_);
  checked_.insert(version.key);
}

void Cache::prefetch(std::vector<Wanted> wanted) {
  const std::lock_guard lock(mutex_);
  wanted_.assign(std::make_move_iterator(wanted.begin()), std::make_move_iterator(wanted.end()));
  ahead_bytes_ = reserved_bytes_;
  try {
    while (fetchers_.size() < std::min(kFetchers, wanted_.size())) {
      fetchers_.emplace_back([this] { fetch_ahead(); });
    }
  } catch (const std::system_error&) {  // no more threads: those that are there do it
  }
  wanted_there_.notify_all();
}

// Returns the bytes to reserve for an object of unknown size: those of the largest such object so
// far.
std::int64_t Cache::reserve_for(const std::string& path) {
  return is_made_here(path) && !versions_.contains(path) ? largest_made_bytes_ : 0;
}

void Cache::fetch_ahead() {
  std::unique_lock lock(mutex_);
  while (true) {
    wanted_there_.wait(lock, [this] { return stop_ || !wanted_.empty(); });
    if (stop_) return;
    const Wanted next = std::move(wanted_.front());
    wanted_.pop_front();
    const std::int64_t reserved = reserve_for(next.path);
    if (ahead_bytes_ + reserved > most_ahead_bytes_) {
      wanted_.clear();
      continue;
    }
    ahead_bytes_ += reserved;
    reserved_bytes_ += reserved;
    lock.unlock();
    std::optional<Version> version;
    try {
      version = version_of(*next.origin, next.path);
    } catch (const std::exception&) {  // rethrown when the object is opened
    }
    lock.lock();
    reserved_bytes_ -= reserved;
    if (!version) continue;
    ahead_bytes_ += version->identity.bytes - reserved;
    if (ahead_bytes_ > most_ahead_bytes_) {
      wanted_.clear();
      continue;
    }
    lock.unlock();
    try {
      // Does not wait for an object that another process already writes.
      if (folder_.being_written(version->key) < 0) fetch(*next.origin, next.path, *version);
    } catch (const std::exception&) {  // rethrown when the object is opened
    }
    lock.lock();
  }
}

}  // namespace scaletrain::storage
