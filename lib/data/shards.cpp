#include "lib/data/shards.h"

#include <fmt/format.h>

#include <filesystem>

#include "lib/core/error.h"
#include "lib/core/log.h"
#include "lib/core/url.h"
#include "lib/data/classes_file.h"
#include "lib/data/open_shards.h"
#include "lib/data/stored_index.h"
#include "lib/format/tar_samples.h"

namespace scaletrain::data {
namespace {

constexpr std::size_t kOpenShards = 256;  // of the 1,024 descriptors that a process usually has

class ShardDataset : public Dataset {
 public:
  ShardDataset(const std::vector<std::string>& paths, const std::string& index_cache,
               const std::shared_ptr<const storage::Stores>& stores) {
    stores->prefetch(paths);
    std::vector<storage::Identity> identities;
    std::size_t in_memory = 0;
    for (const std::string& path : paths) {
      const auto shard = stores->open(path);
      const bool is_remote = core::is_url(path);
      indexes_.emplace_back(path, *shard,
                            is_remote && index_cache.empty() ? stores->index_folder() : index_cache,
                            stores->of(path));
      identities.push_back(shard->identity());
      places_.push_back(core::shown_path(path));
      names_.push_back(core::base_name(path));
      size_ += static_cast<std::int64_t>(indexes_.back().entries().size());
      in_memory += indexes_.back().kept_in_memory() ? 1 : 0;
    }
    if (size_ == 0) {
      throw core::DataError(paths.empty() ? "/data" : core::shown_path(paths.front()),
                            fmt::format("no sample in {} shards", paths.size()),
                            "check the shards that the recipe names");
    }
    if (in_memory > 0) {
      core::warn(
          "{} of {} shard indexes cannot be written and are built again at every start; name a "
          "folder for them with data.index_cache",
          in_memory, paths.size());
    }
    classes_ = read_classes(std::filesystem::path(paths.front()).parent_path().string(),
                            stores->of(paths.front()));
    open_ = std::make_unique<OpenShards>(stores, paths, std::move(identities), kOpenShards);
  }

  std::int64_t size() const override { return size_; }
  std::int64_t shard_count() const override { return static_cast<std::int64_t>(places_.size()); }
  std::int64_t shard_size(std::int64_t shard) const override {
    return static_cast<std::int64_t>(indexes_[static_cast<std::size_t>(shard)].entries().size());
  }
  const std::vector<std::string>& classes() const override { return classes_; }

  RawSample read(std::int64_t shard, std::int64_t sample) const override {
    const auto number = static_cast<std::size_t>(shard);
    const format::IndexEntry entry = indexes_[number].entries()[static_cast<std::size_t>(sample)];
    const auto object = open_->get(shard);
    const format::ReadAt read_at = [&object](std::int64_t offset, std::span<std::byte> out) {
      object->read(offset, out);
    };
    const std::int64_t begin = entry.begin_block * format::kTarBlock;
    const auto member = format::TarReader(places_[number], object->identity().bytes, read_at, begin,
                                          entry.header_bytes)
                            .next();
    auto name = member ? format::split_sample_name(member->path) : std::nullopt;
    if (!name || member->bytes != entry.image_bytes) {
      throw core::DataError(fmt::format("{}: byte {}", places_[number], begin),
                            "is not the member that the index names",
                            "the shard was changed: start again, and leave shards alone while they "
                            "are read");
    }
    RawSample raw;
    raw.label = entry.label;
    raw.shard = names_[number];
    raw.key = std::move(name->key);
    raw.extension = std::move(name->extension);
    raw.offset = member->data;
    raw.image.resize(entry.image_bytes);
    object->read(member->data, std::as_writable_bytes(std::span(raw.image)));
    return raw;
  }

  std::string image_place(std::int64_t shard, const RawSample& sample) const override {
    return fmt::format("{}: {}.{} (byte {})", places_[static_cast<std::size_t>(shard)],
                       format::shown_name(sample.key), sample.extension, sample.offset);
  }
  std::string label_place(std::int64_t shard, const RawSample& sample) const override {
    return fmt::format("{}: {}.cls", places_[static_cast<std::size_t>(shard)],
                       format::shown_name(sample.key));
  }

 private:
  std::vector<std::string> places_, names_, classes_;  // places: for messages
  std::vector<StoredIndex> indexes_;
  std::int64_t size_ = 0;
  std::unique_ptr<const OpenShards> open_;
};

}  // namespace

std::shared_ptr<const Dataset> open_shards(const std::vector<std::string>& paths,
                                           const std::string& index_cache,
                                           const std::shared_ptr<const storage::Stores>& stores) {
  return std::make_shared<ShardDataset>(paths, index_cache, stores);
}

}  // namespace scaletrain::data
