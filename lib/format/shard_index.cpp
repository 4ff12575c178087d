#include "lib/format/shard_index.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bit>
#include <cstring>
#include <limits>

#include "lib/core/error.h"
#include "lib/core/hash.h"
#include "lib/format/tar_samples.h"

namespace scaletrain::format {
namespace {

static_assert(std::endian::native == std::endian::little, "the file is little-endian and mapped");

struct Header {
  char magic[8] = {'s', 'c', 't', 'r', 'i', 'd', 'x', '\n'};  // NOLINT(modernize-avoid-c-arrays)
  std::uint32_t version = kIndexVersion;
  std::uint32_t entry_bytes = sizeof(IndexEntry);
  std::int64_t shard_bytes = 0;
  std::int64_t shard_mtime_ns = 0;
  std::uint64_t count = 0;
  std::uint64_t checksum = 0;  // XXH3-64 of the entries
};
static_assert(sizeof(Header) == 48);

Header make_header(std::span<const IndexEntry> entries, ShardVersion version) {
  Header header;
  header.shard_bytes = version.bytes;
  header.shard_mtime_ns = version.mtime_ns;
  header.count = entries.size();
  header.checksum = core::xxh3_64(std::as_bytes(entries));
  return header;
}

std::shared_ptr<const void> map_file(const std::filesystem::path& path, std::size_t& bytes) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return nullptr;
  struct stat status {};
  void* address = MAP_FAILED;
  if (::fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_size > 0) {
    bytes = static_cast<std::size_t>(status.st_size);
    address = ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, fd, 0);
  }
  ::close(fd);
  if (address == MAP_FAILED) return nullptr;
  return {address, [bytes](void* mapped) { ::munmap(mapped, bytes); }};
}

}  // namespace

std::vector<IndexEntry> index_shard(const std::string& name, std::int64_t file_bytes,
                                    const ReadAt& read) {
  // Entries count blocks in 32 bits.
  constexpr std::int64_t kMaxShardBytes = kTarBlock << 32;
  if (file_bytes > kMaxShardBytes) {
    throw core::DataError(
        name, fmt::format("a shard of {} bytes", file_bytes),
        fmt::format("at most {} bytes are allowed: write more and smaller shards", kMaxShardBytes));
  }
  std::vector<IndexEntry> entries;
  for_each_sample(name, file_bytes, read, [&](const TarSample& sample) {
    entries.push_back({static_cast<std::uint32_t>(sample.image.begin / kTarBlock),
                       static_cast<std::uint32_t>(sample.image.data - sample.image.begin),
                       static_cast<std::uint32_t>(sample.image.bytes),
                       static_cast<std::uint32_t>(sample.label)});
  });
  return entries;
}

std::string encode_index(std::span<const IndexEntry> entries, ShardVersion version) {
  const Header header = make_header(entries, version);
  std::string bytes(sizeof(header) + entries.size_bytes(), '\0');
  std::memcpy(bytes.data(), &header, sizeof(header));
  if (!entries.empty()) {
    std::memcpy(bytes.data() + sizeof(header), entries.data(), entries.size_bytes());
  }
  return bytes;
}

std::optional<std::string> index_of_copy(std::string index, ShardVersion version) {
  Header header;
  if (index.size() < sizeof(header)) return std::nullopt;
  std::memcpy(&header, index.data(), sizeof(header));
  if (header.shard_bytes != version.bytes) return std::nullopt;
  header.shard_mtime_ns = version.mtime_ns;
  std::memcpy(index.data(), &header, sizeof(header));
  return index;
}

std::optional<MappedIndex> MappedIndex::open(const std::filesystem::path& path,
                                             ShardVersion version) {
  std::size_t bytes = 0;
  MappedIndex index;
  index.mapping_ = map_file(path, bytes);
  if (!index.mapping_ || bytes < sizeof(Header) ||
      (bytes - sizeof(Header)) % sizeof(IndexEntry) != 0) {
    return std::nullopt;
  }
  const auto* const data = static_cast<const std::byte*>(index.mapping_.get());
  index.entries_ = {reinterpret_cast<const IndexEntry*>(data + sizeof(Header)),
                    (bytes - sizeof(Header)) / sizeof(IndexEntry)};
  // A sound index has exactly the header that would be written for its entries now.
  const Header expected = make_header(index.entries_, version);
  if (std::memcmp(data, &expected, sizeof(expected)) != 0) return std::nullopt;
  return index;
}

}  // namespace scaletrain::format
