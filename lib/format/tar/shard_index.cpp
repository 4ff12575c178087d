#include "lib/format/tar/shard_index.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <charconv>
#include <cstring>
#include <filesystem>

#include "lib/core/text/hash.h"
#include "lib/core/text/text.h"
#include "lib/core/text/url.h"

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
  std::uint64_t checksum = 0;  // XXH3-64 of the entries, seeded with that of sha256
  std::uint64_t excluded = 0;
  std::array<std::byte, 32> sha256{};  // hash of the shard, zeros if not computed
};
static_assert(sizeof(Header) == 88);

Header make_header(std::span<const IndexEntry> entries, ShardVersion version,
                   const std::array<std::byte, 32>& sha256) {
  Header header;
  header.excluded = version.excluded;
  header.sha256 = sha256;
  header.shard_bytes = version.bytes;
  header.shard_mtime_ns = version.mtime_ns;
  header.count = entries.size();
  header.checksum = core::xxh3_64(std::as_bytes(entries), core::xxh3_64(sha256));
  return header;
}

// Parses 64 hexadecimal digits; zeros for an empty text.
std::array<std::byte, 32> from_hex(std::string_view digits) {
  std::array<std::byte, 32> bytes{};
  for (std::size_t i = 0; 2 * i + 1 < digits.size() && i < bytes.size(); ++i) {
    unsigned value = 0;
    std::from_chars(digits.data() + 2 * i, digits.data() + 2 * i + 2, value, 16);
    bytes[i] = static_cast<std::byte>(value);
  }
  return bytes;
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

std::uint64_t excluded_digest(std::span<const std::string> keys) {
  if (keys.empty()) return 0;
  std::string text;
  for (const std::string& key : keys) text.append(key).push_back('\0');
  return core::xxh3_64(text);
}

std::string encode_index(std::span<const IndexEntry> entries, ShardVersion version,
                         std::string_view sha256) {
  const Header header = make_header(entries, version, from_hex(sha256));
  std::string bytes(sizeof(header) + entries.size_bytes(), '\0');
  std::memcpy(bytes.data(), &header, sizeof(header));
  if (!entries.empty()) {
    std::memcpy(bytes.data() + sizeof(header), entries.data(), entries.size_bytes());
  }
  return bytes;
}

std::string index_path(const std::string& shard_path, const std::string& index_cache) {
  if (index_cache.empty()) return shard_path + ".idx";
  const std::string whole = core::is_url(shard_path)
                                ? shard_path
                                : std::filesystem::absolute(shard_path).lexically_normal().string();
  return (std::filesystem::path(index_cache) /
          fmt::format("{}.{:016x}.idx", core::base_name(whole), core::xxh3_64(whole)))
      .string();
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

std::string recorded_sha256(const std::filesystem::path& path, ShardVersion version) {
  std::size_t bytes = 0;
  const auto mapping = map_file(path, bytes);
  if (!mapping || bytes < sizeof(Header)) return "";
  Header header;
  std::memcpy(&header, mapping.get(), sizeof(header));
  version.excluded = header.excluded;
  const auto index = MappedIndex::open(path, version);
  return index ? index->sha256() : "";
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
  // The header of a valid index equals the one that would be written for its entries now.
  Header found;
  std::memcpy(&found, data, sizeof(found));
  const Header expected = make_header(index.entries_, version, found.sha256);
  if (std::memcmp(&found, &expected, sizeof(expected)) != 0) return std::nullopt;
  return index;
}

std::string MappedIndex::sha256() const {
  Header header;
  std::memcpy(&header, mapping_.get(), sizeof(header));
  if (header.sha256 == Header().sha256) return "";
  return core::hex(header.sha256);
}

}  // namespace scaletrain::format
