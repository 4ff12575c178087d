#include "app/data/files/new_shard.h"

#include <cstring>
#include <filesystem>
#include <optional>
#include <string_view>
#include <utility>

#include "app/data/files/numbered_files.h"
#include "app/data/files/shard_files.h"
#include "lib/core/disk/disk.h"
#include "lib/core/error.h"
#include "lib/core/text/url.h"
#include "lib/data/set/stored_index.h"
#include "lib/format/tar/shard_index.h"

namespace scaletrain::app {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostObjectBytes = std::size_t{5} << 30;

// Under a temporary name until it is published.
class ShardOnDisk : public NewShard {
 public:
  ShardOnDisk(const storage::Stores& stores, fs::path path)
      : stores_(stores), path_(std::move(path)), temporary_(unfinished(path_)) {
    file_.emplace(core::system_disk(), temporary_, 0, format::Sum::kSha256);
  }
  ~ShardOnDisk() override {
    std::error_code ignored;
    fs::remove(temporary_, ignored);  // still there unless renamed
    fs::remove(index_of(temporary_), ignored);
  }
  ShardOnDisk(const ShardOnDisk&) = delete;
  ShardOnDisk& operator=(const ShardOnDisk&) = delete;

  void write(std::span<const std::byte> bytes) override { file_->write(bytes); }

  format::FileEntry finish(bool with_index) override {
    format::FileEntry entry = file_->finish();
    file_.reset();  // closes it: a set may have thousands of shards
    if (with_index) write_index(stores_, temporary_.string(), "", entry.sum);
    has_index_ = with_index;
    return entry;
  }

  void publish() override {
    core::Disk& disk = core::system_disk();
    disk.rename(temporary_, path_);
    if (has_index_) disk.rename(index_of(temporary_), index_of(path_));
  }

 private:
  static fs::path index_of(const fs::path& shard) { return format::index_path(shard.string(), ""); }

  const storage::Stores& stores_;
  fs::path path_, temporary_;
  std::optional<format::HashedFile> file_;
  bool has_index_ = false;
};

class ShardInStore : public NewShard {
 public:
  ShardInStore(const storage::Stores& stores, std::string path)
      : stores_(stores), path_(std::move(path)) {}

  void write(std::span<const std::byte> bytes) override {
    if (bytes_.size() + bytes.size() > kMostObjectBytes) {
      throw core::UsageError(
          "--shard-bytes", "a shard has more than 5 GiB",
          "use smaller shards: object stores accept at most 5 GiB in one upload");
    }
    const std::size_t held = bytes_.size();
    bytes_.resize(held + bytes.size());
    std::memcpy(bytes_.data() + held, bytes.data(), bytes.size());
  }

  format::FileEntry finish(bool with_index) override {
    format::FileEntry entry = format::sum_up(bytes_, format::Sum::kSha256);
    const storage::Storage& storage = stores_.of(path_);
    // Google Cloud Storage has no write-if-absent as S3 has: only the listing at the start guards
    // there.
    const bool is_guarded = core::url_scheme(path_) != "gs";
    if (!is_guarded) storage.write(path_, bytes_);
    if (is_guarded && !storage.write_if_absent(path_, bytes_)) {
      throw core::UsageError(core::shown_path(path_), "was written by another command",
                             "choose another folder or --name");
    }
    if (with_index) put_index(storage, entry.sum);
    return entry;
  }

 private:
  void put_index(const storage::Storage& storage, const std::string& sha256) const {
    const auto entries =
        format::index_shard(core::shown_path(path_), static_cast<std::int64_t>(bytes_.size()),
                            [this](std::int64_t offset, std::span<std::byte> out) {
                              std::memcpy(out.data(), bytes_.data() + offset, out.size());
                            });
    const format::ShardVersion version = data::version_of(storage.open(path_)->identity());
    storage.write(format::index_path(path_, ""), format::encode_index(entries, version, sha256));
  }

  const storage::Stores& stores_;
  std::string path_;
  std::string bytes_;
};

}  // namespace

std::unique_ptr<NewShard> new_shard(const storage::Stores& stores, const std::string& path) {
  if (core::is_url(path)) return std::make_unique<ShardInStore>(stores, path);
  return std::make_unique<ShardOnDisk>(stores, path);
}

}  // namespace scaletrain::app
