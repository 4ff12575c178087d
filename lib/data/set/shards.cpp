#include "lib/data/set/shards.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <iterator>
#include <mutex>
#include <optional>
#include <utility>

#include "lib/core/error.h"
#include "lib/core/log.h"
#include "lib/core/parallel.h"
#include "lib/core/text/compressed_name.h"
#include "lib/core/text/hash.h"
#include "lib/core/text/text.h"
#include "lib/core/text/url.h"
#include "lib/data/set/classes_file.h"
#include "lib/data/set/open_shards.h"
#include "lib/data/set/quarantine_lists.h"
#include "lib/data/set/stored_index.h"
#include "lib/format/tar/tar_samples.h"

namespace scaletrain::data {
namespace {

constexpr std::size_t kOpenShards = 256;  // limit; a process usually has 1,024 descriptors
// Tar bytes of a short list of files with its header.
constexpr std::int64_t kListWindow = 2 * format::kTarBlock;
constexpr int kRemoteOpeners = 16;  // openers wait for remote servers and do not compute

// A shard that is open or will be opened.
struct Shard {
  std::string path, place, name;         // place: for messages
  std::atomic<std::int64_t> known = -1;  // samples; -1: not known
  std::int64_t digest_before = -1;       // -1: not known
  std::int64_t digest = -1;              // once it is open
  std::mutex opening;
  std::atomic<bool> is_open = false;
  storage::Identity identity;
  std::optional<StoredIndex> index;
};

class ShardDataset : public Dataset {
 public:
  ShardDataset(const std::vector<std::string>& paths, std::string index_cache,
               const OpenOptions& options, std::shared_ptr<const storage::Stores> stores,
               QuarantineLists quarantine)
      : stores_(std::move(stores)),
        quarantine_(std::move(quarantine)),
        index_cache_(std::move(index_cache)),
        rule_{.field = options.label.field,
              .key = options.label.key,
              .skips_incomplete = options.skip_bad},
        lazy_(options.lazy),
        shards_(paths.size()),
        files_(stores_, paths, kOpenShards) {
    for (std::size_t i = 0; i < paths.size(); ++i) {
      shards_[i].path = paths[i];
      shards_[i].place = core::shown_path(paths[i]);
      shards_[i].name = core::tar_name(paths[i]);
      if (i < options.shard_sizes.size()) shards_[i].known = options.shard_sizes[i];
      if (i < options.shard_digests.size()) shards_[i].digest_before = options.shard_digests[i];
    }
    if (paths.empty()) fail_empty();
    if (!options.ignores_classes) classes_ = shared_classes(paths, *stores_);
    if (classes_.empty()) classes_ = options.classes.names;
    rule_.classes = classes_;
    if (!lazy_) open_all();
  }

  std::int64_t size() const override {
    std::int64_t size = 0;
    for (std::int64_t i = 0; i < shard_count(); ++i) size += shard_size(i);
    return size;
  }
  std::int64_t shard_count() const override { return static_cast<std::int64_t>(shards_.size()); }
  std::int64_t shard_size(std::int64_t shard) const override {
    const std::int64_t known = shards_[static_cast<std::size_t>(shard)].known;
    return known >= 0 ? known : static_cast<std::int64_t>(entries(shard).size());
  }
  std::vector<std::int64_t> known_sizes() const override {
    std::vector<std::int64_t> sizes;
    for (const Shard& shard : shards_) sizes.push_back(shard.known);
    return sizes;
  }
  std::int64_t shard_digest(std::int64_t shard) const override {
    entries(shard);
    return shards_[static_cast<std::size_t>(shard)].digest;
  }
  std::vector<std::int64_t> open_digests() const override {
    std::vector<std::int64_t> digests;
    for (const Shard& shard : shards_) digests.push_back(shard.is_open ? shard.digest : -1);
    return digests;
  }
  const std::vector<std::string>& classes() const override { return classes_; }
  std::string shard_path(std::int64_t shard) const override {
    return shards_[static_cast<std::size_t>(shard)].path;
  }
  void announce(const std::vector<std::int64_t>& shards) const override {
    std::vector<std::string> paths;
    paths.reserve(shards.size());
    for (const std::int64_t shard : shards) paths.push_back(shard_path(shard));
    stores_->prefetch(paths);
  }
  std::int64_t label(std::int64_t shard, std::int64_t sample) const override {
    return label_of(entries(shard)[static_cast<std::size_t>(sample)]);
  }

  void read_into(std::int64_t shard, std::int64_t sample, RawSample& raw) const override {
    read_entry(shard, entries(shard)[static_cast<std::size_t>(sample)], raw);
  }

  std::string image_place(std::int64_t shard, const RawSample& sample) const override {
    return fmt::format("{}: {}.{} (byte {})", shards_[static_cast<std::size_t>(shard)].place,
                       format::shown_name(sample.key), sample.extension, sample.offset);
  }
  std::string label_place(std::int64_t shard, const RawSample& sample) const override {
    return fmt::format("{}: {}{}", shards_[static_cast<std::size_t>(shard)].place,
                       format::shown_name(sample.key),
                       rule_.of_folder() ? "" : "." + format::shown_name(rule_.field));
  }

 private:
  std::span<const format::IndexEntry> entries(std::int64_t number) const {
    Shard& shard = shards_[static_cast<std::size_t>(number)];
    if (!shard.is_open) {
      const std::lock_guard lock(shard.opening);
      if (!shard.is_open) open(number);
    }
    return shard.index->entries();
  }

  void open(std::int64_t number) const {
    Shard& shard = shards_[static_cast<std::size_t>(number)];
    const auto object = stores_->open(shard.path);
    // No index is written beside a compressed shard: the index describes the decompressed content.
    const bool is_plain_file = !core::is_url(shard.path) && !core::is_compressed(shard.path);
    const bool has_folder = is_plain_file || !index_cache_.empty();
    shard.index.emplace(shard.path, *object, has_folder ? index_cache_ : stores_->index_folder(),
                        stores_->of(shard.path), quarantine_.keys_of(shard.path), rule_);
    shard.identity = object->identity();
    const auto count = static_cast<std::int64_t>(shard.index->entries().size());
    if (shard.known >= 0 && shard.known != count) {
      throw core::DataError(shard.place,
                            fmt::format("has {}, and had {} before the run was resumed",
                                        core::counted(count, "sample"), shard.known.load()),
                            "the shard was changed: put the old one back, or start a new run");
    }
    shard.known = count;
    shard.digest = digest_of(number);
    if (shard.digest_before >= 0 && shard.digest_before != shard.digest) {
      core::warn("the resumed run is not bit for bit equal: {} holds other samples", shard.place);
    }
    shard.is_open = true;
  }

  // Digest of a shard's samples, independent of their offsets, as the same samples may be packed
  // into a tar again. A shard that is opened to be read next may be read for it; others might have
  // to be downloaded.
  std::int64_t digest_of(std::int64_t number) const {
    const Shard& shard = shards_[static_cast<std::size_t>(number)];
    const std::span<const format::IndexEntry> all = shard.index->entries();
    std::vector<std::uint32_t> facts;
    facts.reserve(2 * all.size());
    for (const format::IndexEntry& entry : all) {
      facts.insert(facts.end(), {entry.label, entry.image_bytes});
    }
    std::uint64_t digest = core::xxh3_64(std::as_bytes(std::span(facts)));
    if (lazy_ && !all.empty()) digest = digest_of_sample(number, all[all.size() / 2], digest);
    return digest_number(fmt::format("{} {:016x}", shard.name, digest));
  }

  std::uint64_t digest_of_sample(std::int64_t shard, const format::IndexEntry& entry,
                                 std::uint64_t seed) const {
    RawSample sample;
    try {
      read_entry(shard, entry, sample);
    } catch (const core::DataError&) {  // reported when the sample is trained on
    }
    return core::xxh3_64(sample.image, core::xxh3_64(sample.key, seed));
  }

  void read_entry(std::int64_t shard, const format::IndexEntry& entry, RawSample& raw) const {
    const Shard& from = shards_[static_cast<std::size_t>(shard)];
    const auto object = files_.get(shard, from.identity);
    const format::ReadAt read_at = [&object](std::int64_t offset, std::span<std::byte> out) {
      object->read(offset, out);
    };
    const std::int64_t begin = entry.begin_block * format::kTarBlock;
    const auto member =
        format::TarReader(from.place, object->identity().bytes, read_at, begin, entry.header_bytes)
            .next();
    auto name = member ? format::split_sample_name(member->path) : std::nullopt;
    if (!name || member->bytes != entry.image_bytes) {
      fail_changed(from, begin);
    }
    raw.label = label_of(entry);
    if (entry.has_list()) raw.labels = read_list(from, object->identity().bytes, read_at, entry);
    raw.shard = from.name;
    raw.key = std::move(name->key);
    raw.extension = std::move(name->extension);
    raw.offset = member->data;
    raw.image.resize(entry.image_bytes);
    object->read(member->data, std::as_writable_bytes(std::span(raw.image)));
  }

  static std::int64_t label_of(const format::IndexEntry& entry) {
    return entry.has_list() ? -1 : std::int64_t{entry.label};
  }

  std::vector<std::int64_t> read_list(const Shard& from, std::int64_t file_bytes,
                                      const format::ReadAt& read_at,
                                      const format::IndexEntry& entry) const {
    const std::int64_t begin = entry.list_block() * format::kTarBlock;
    format::TarReader reader(from.place, file_bytes, read_at, begin, kListWindow);
    const auto member = reader.next();
    std::optional<format::FoundLabel> label;
    if (member && member->bytes <= format::kMaxLabelBytes) {
      const std::span<const std::byte> bytes = reader.bytes(member->data, member->bytes);
      label = rule_.parse({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    }
    if (!label || label->number >= 0) fail_changed(from, begin);
    return std::move(label->list);
  }

  void open_all() const {
    const bool is_remote = core::is_url(shards_.front().path);
    core::for_each_index(shard_count(), is_remote ? kRemoteOpeners : 1,
                         [this](std::int64_t i) { entries(i); });
    const auto in_memory = std::count_if(shards_.begin(), shards_.end(), [](const Shard& shard) {
      return shard.index->kept_in_memory();
    });
    if (size() == 0) fail_empty();
    if (in_memory > 0) {
      core::warn(
          "{} of {} shard indexes cannot be written and are built again at every start; name a "
          "folder for them with data.index_cache",
          in_memory, shards_.size());
    }
  }

  [[noreturn]] static void fail_changed(const Shard& from, std::int64_t begin) {
    throw core::DataError(
        fmt::format("{}: byte {}", from.place, begin), "is not the member that the index names",
        "the shard was changed: start again, and do not change shards while they are read");
  }

  [[noreturn]] void fail_empty() const {
    throw core::DataError(
        shards_.empty() ? "/data" : shards_.front().place,
        fmt::format("no sample in {}", core::counted(std::ssize(shards_), "shard")),
        "check the shards that the recipe names");
  }

  std::shared_ptr<const storage::Stores> stores_;
  QuarantineLists quarantine_;
  std::string index_cache_;
  format::LabelRule rule_;
  bool lazy_;
  mutable std::vector<Shard> shards_;
  std::vector<std::string> classes_;
  OpenShards files_;
};

}  // namespace

std::shared_ptr<const Dataset> open_shards(const std::vector<std::string>& paths,
                                           const std::string& index_cache,
                                           const OpenOptions& options) {
  const auto stores = options.stores ? options.stores : std::make_shared<storage::Stores>();
  const QuarantineLists quarantine(paths, *stores);
  std::vector<std::string> sound;
  std::copy_if(paths.begin(), paths.end(), std::back_inserter(sound),
               [&](const std::string& path) { return !quarantine.holds_shard(path); });
  return std::make_shared<ShardDataset>(sound, index_cache, options, stores, quarantine);
}

}  // namespace scaletrain::data
