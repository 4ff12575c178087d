// SHARD.tar.idx: where the samples of a tar shard are and what their labels are, 16 bytes a sample
// (docs/reference/formats/index.md). It belongs to one version of the shard, known by size and
// time.
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

// One sample, as it stands in the file.
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

// Reads through the whole shard and returns its samples in file order, without those whose keys
// `excluded` (sorted bytewise) holds. Throws core::DataError as for_each_sample does, and for a
// shard above 2 TiB. Up to `threads` threads call `read` at once, and change nothing else. Labels
// are where `rule` says, and `left_out` becomes the number of incomplete samples that it leaves
// out.
std::vector<IndexEntry> index_shard(const std::string& name, std::int64_t file_bytes,
                                    const ReadAt& read, std::span<const std::string> excluded = {},
                                    int threads = 1, const LabelRule& rule = {},
                                    std::int64_t* left_out = nullptr);

// The file's bytes. `sha256` of the shard in hexadecimal, "" where nobody computed it.
std::string encode_index(std::span<const IndexEntry> entries, ShardVersion version,
                         std::string_view sha256 = {});

// An index that was written for a copy of the shard, as one for `version`: the time is exchanged.
// nullopt for an index of another size of the shard.
std::optional<std::string> index_of_copy(std::string index, ShardVersion version);

// The SHA-256 of a shard in hexadecimal out of the index at `path`, whatever samples it leaves out;
// "" where nobody computed it, or the index is not of `version`.
std::string recorded_sha256(const std::filesystem::path& path, ShardVersion version);

// An index mapped into memory.
class MappedIndex {
 public:
  // nullopt when there is none, or it is damaged or of another version of the shard or the format:
  // then it is built again.
  static std::optional<MappedIndex> open(const std::filesystem::path& path, ShardVersion version);

  std::span<const IndexEntry> entries() const { return entries_; }
  std::string sha256() const;  // hash of the shard in hexadecimal, "" if not computed

 private:
  std::shared_ptr<const void> mapping_;
  std::span<const IndexEntry> entries_;
};

}  // namespace scaletrain::format
