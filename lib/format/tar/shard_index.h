// SHARD.tar.idx: offsets and labels of the samples of a tar shard, 16 bytes a sample
// (docs/reference/formats/index.md). It is valid for one version of the shard, identified by size
// and time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/format/tar/label_rule.h"
#include "lib/format/tar/tar.h"

namespace scaletrain::format {

inline constexpr std::uint32_t kIndexVersion = 2;

// One sample, in the file's layout.
struct IndexEntry {
  std::uint32_t begin_block = 0;   // first header block of the image, in blocks of 512 bytes
  std::uint32_t header_bytes = 0;  // distance from that block to the image's bytes
  std::uint32_t image_bytes = 0;
  // Class number if below 2^31. Otherwise a list of classes: the lower 31 bits, as a signed number,
  // are the distance in blocks from `begin_block` to the member that holds it.
  std::uint32_t label = 0;

  bool has_list() const { return label >> 31 != 0; }
  std::int64_t list_block() const {
    return std::int64_t{begin_block} + (static_cast<std::int32_t>(label << 1) >> 1);
  }

  bool operator==(const IndexEntry&) const = default;
};
static_assert(sizeof(IndexEntry) == 16);

// The version of a shard that an index describes.
struct ShardVersion {
  std::int64_t bytes = 0;
  std::int64_t mtime_ns = 0;
  // excluded_digest() of the keys that the index leaves out, and LabelRule::digest(), by XOR.
  std::uint64_t excluded = 0;
};

// XXH3-64 of the keys, each ended by a NUL; 0 for none.
std::uint64_t excluded_digest(std::span<const std::string> keys);

// Reads the whole shard and returns its samples in file order, without those whose keys are in
// `excluded` (sorted bytewise). Up to `threads` threads call `read` at once. `rule` locates labels;
// `left_out` receives the number of incomplete samples that it skips. Throws core::DataError like
// for_each_sample(), and for a shard above 2 TiB.
std::vector<IndexEntry> index_shard(const std::string& name, std::int64_t file_bytes,
                                    const ReadAt& read, std::span<const std::string> excluded = {},
                                    int threads = 1, const LabelRule& rule = {},
                                    std::int64_t* left_out = nullptr);

// Returns the file's bytes. `sha256`: hash of the shard in hexadecimal, "" if not computed.
std::string encode_index(std::span<const IndexEntry> entries, ShardVersion version,
                         std::string_view sha256 = {});

// Returns the path of a shard's index: "SHARD.tar.idx" beside it, or in the folder `index_cache`,
// if that is not empty, "NAME.tar.HASH.idx" with a hash of the shard's absolute path or URL.
std::string index_path(const std::string& shard_path, const std::string& index_cache);

// Adapts the index of a copy of the shard to `version` by replacing the time; nullopt for an index
// of a shard of another size.
std::optional<std::string> index_of_copy(std::string index, ShardVersion version);

// Returns the shard's SHA-256 in hexadecimal from the index at `path`, even if that excludes
// samples; "" if it was not computed or the index is not of `version`.
std::string recorded_sha256(const std::filesystem::path& path, ShardVersion version);

// An index mapped into memory.
class MappedIndex {
 public:
  // Returns nullopt if there is no index, or if it is damaged or of another version of the shard or
  // format: it must then be rebuilt.
  static std::optional<MappedIndex> open(const std::filesystem::path& path, ShardVersion version);

  std::span<const IndexEntry> entries() const { return entries_; }
  std::string sha256() const;  // hash of the shard in hexadecimal, "" if not computed

 private:
  std::shared_ptr<const void> mapping_;
  std::span<const IndexEntry> entries_;
};

}  // namespace scaletrain::format
