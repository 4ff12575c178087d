#include "lib/format/pt/zip_directory.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "lib/core/error.h"
#include "lib/core/printable.h"

namespace scaletrain::format {
namespace {

// Records of a zip file and the offsets of their fields (PKWARE, APPNOTE.TXT, 4.3).
constexpr std::string_view kLocalMark("PK\x03\x04", 4), kCentralMark("PK\x01\x02", 4);
constexpr std::string_view kEndMark("PK\x05\x06", 4), kLocatorMark("PK\x06\x07", 4);
constexpr std::string_view kEnd64Mark("PK\x06\x06", 4);
constexpr std::int64_t kLocalBytes = 30, kCentralBytes = 46, kEndBytes = 22;
constexpr std::int64_t kLocatorBytes = 20, kEnd64Bytes = 56;
constexpr std::uint64_t kIn64 = 0xffffffff;  // the number is in the record of 64 bits
constexpr std::uint64_t kCountIn64 = 0xffff;
// Enough for 500,000 entries of torch.save; limits the memory for a hostile directory to 200 MB.
constexpr std::uint64_t kMaxDirectoryBytes = 32'000'000;
// Bits 1 and 2: how well it is compressed; bit 3: sizes follow the contents; bit 11: names are
// UTF-8.
constexpr std::uint64_t kHarmlessFlags = 0x080e, kEncrypted = 1;

// Little-endian fields of a record.
class ZipFields {
 public:
  explicit ZipFields(std::string_view bytes) : bytes_(bytes) {}

  std::uint64_t number(std::size_t offset, std::size_t bytes) const {
    std::uint64_t value = 0;
    std::memcpy(&value, bytes_.data() + offset, bytes);
    return value;
  }

 private:
  std::string_view bytes_;
};

class ZipDirectoryReader {
 public:
  ZipDirectoryReader(const ByteReader& file, const std::string& place)
      : file_(file), place_(place) {}

  std::vector<ZipEntry> read() {
    find_directory();
    std::string directory = bytes_at(directory_begin_, directory_bytes_);
    std::string_view rest = directory;
    std::vector<Found> found;
    found.reserve(count_);
    for (std::uint64_t i = 0; i < count_; ++i) found.push_back(read_entry(rest));
    if (!rest.empty()) refuse("its directory has {} bytes too many", rest.size());
    return check_entries(std::move(found));
  }

 private:
  struct Found {
    ZipEntry entry;
    std::int64_t header = 0;  // offset of the entry's local header
  };

  template <class... Args>
  [[noreturn]] void refuse(fmt::format_string<Args...> format, Args&&... args) const {
    throw core::CheckpointError(place_, fmt::format(format, std::forward<Args>(args)...),
                                kZipRemedy);
  }

  static std::string shown(std::string_view name) {
    constexpr std::size_t kShown = 200;
    return fmt::format("\"{}\"", core::printable(name.substr(0, kShown)));
  }

  std::string bytes_at(std::int64_t begin, std::int64_t bytes) const {
    std::string text(static_cast<std::size_t>(bytes), '\0');
    file_.read(begin, std::as_writable_bytes(std::span(text)));
    return text;
  }

  void find_directory() {
    const std::int64_t end_begin = file_.bytes() - kEndBytes;
    const std::string end = end_begin < 0 ? "" : bytes_at(end_begin, kEndBytes);
    if (!end.starts_with(kEndMark) || ZipFields(end).number(20, 2) != 0) {
      refuse("does not end as a zip archive does: it is truncated or has data appended");
    }
    const ZipFields fields(end);
    if (fields.number(4, 2) != 0 || fields.number(6, 2) != 0) refuse("is a part of an archive");
    count_ = fields.number(10, 2);
    std::uint64_t bytes = fields.number(12, 4), begin = fields.number(16, 4);
    auto directory_end = static_cast<std::uint64_t>(end_begin);
    if (const auto wide = find_wide_end(end_begin)) {
      const ZipFields wide_fields(*wide);
      take_wide(count_, wide_fields.number(32, 8), kCountIn64);
      take_wide(bytes, wide_fields.number(40, 8), kIn64);
      take_wide(begin, wide_fields.number(48, 8), kIn64);
      directory_end -= static_cast<std::uint64_t>(kLocatorBytes + kEnd64Bytes);
    }
    if (begin > directory_end || bytes != directory_end - begin) {
      refuse("says that its directory has {} bytes from byte {} on, where it ends at byte {}",
             bytes, begin, directory_end);
    }
    if (bytes > kMaxDirectoryBytes) {
      refuse("has a directory of {} bytes, where at most {} are read", bytes, kMaxDirectoryBytes);
    }
    if (count_ > bytes / static_cast<std::uint64_t>(kCentralBytes)) {
      refuse("says that it has {} entries in a directory of {} bytes", count_, bytes);
    }
    directory_begin_ = static_cast<std::int64_t>(begin);
    directory_bytes_ = static_cast<std::int64_t>(bytes);
  }

  // Returns the 64-bit end record, if a locator before the end record points to it.
  std::optional<std::string> find_wide_end(std::int64_t end_begin) const {
    if (end_begin < kLocatorBytes + kEnd64Bytes) return std::nullopt;
    const std::string locator = bytes_at(end_begin - kLocatorBytes, kLocatorBytes);
    if (!locator.starts_with(kLocatorMark)) return std::nullopt;
    const std::int64_t begin = end_begin - kLocatorBytes - kEnd64Bytes;
    std::string record = bytes_at(begin, kEnd64Bytes);
    const ZipFields fields(record);
    const bool is_sound = record.starts_with(kEnd64Mark) &&
                          ZipFields(locator).number(8, 8) == static_cast<std::uint64_t>(begin) &&
                          fields.number(4, 8) == kEnd64Bytes - 12 && fields.number(16, 4) == 0 &&
                          fields.number(20, 4) == 0 && fields.number(24, 8) == fields.number(32, 8);
    if (!is_sound) refuse("has an end record of 64 bits that makes no sense");
    return record;
  }

  // The 32-bit number must be equal, or its marker for "see the 64-bit record".
  void take_wide(std::uint64_t& number, std::uint64_t wide, std::uint64_t elsewhere) const {
    if (number != wide && number != elsewhere) {
      refuse("says {} in its end record and {} in that of 64 bits", number, wide);
    }
    number = wide;
  }

  // Reads the entry at the start of `rest` and removes it from `rest`.
  Found read_entry(std::string_view& rest) const {
    if (rest.size() < kCentralBytes || !rest.starts_with(kCentralMark)) {
      refuse("has a directory that is truncated after {} bytes",
             static_cast<std::size_t>(directory_bytes_) - rest.size());
    }
    const ZipFields fields(rest);
    const std::uint64_t name_bytes = fields.number(28, 2), extra_bytes = fields.number(30, 2);
    const std::uint64_t all = kCentralBytes + name_bytes + extra_bytes + fields.number(32, 2);
    if (all > rest.size()) refuse("has a directory that is truncated in an entry");
    Found found;
    found.entry.name = rest.substr(kCentralBytes, name_bytes);
    const std::string name = shown(found.entry.name);
    const std::uint64_t flags = fields.number(8, 2), method = fields.number(10, 2);
    if ((flags & kEncrypted) != 0) refuse("entry {} is encrypted", name);
    if ((flags & ~kHarmlessFlags) != 0) refuse("entry {} has the flags {:#x}", name, flags);
    std::uint64_t packed = fields.number(20, 4), bytes = fields.number(24, 4);
    std::uint64_t header = fields.number(42, 4);
    std::uint64_t disk = fields.number(34, 2);
    read_wide(rest.substr(kCentralBytes + name_bytes, extra_bytes), name,
              {&bytes, &packed, &header});
    if (disk != 0) refuse("entry {} is on another disk", name);
    found.entry.is_stored = method == 0;
    if (method == 0 && packed != bytes) {
      refuse("entry {} is stored, and says it has {} and {} bytes", name, bytes, packed);
    }
    const auto end = static_cast<std::uint64_t>(directory_begin_);
    if (header > end || packed > end - header) refuse("entry {} is not within the file", name);
    found.header = static_cast<std::int64_t>(header);
    found.entry.bytes = static_cast<std::int64_t>(packed);
    found.entry.crc32 = static_cast<std::uint32_t>(fields.number(16, 4));
    rest.remove_prefix(all);
    return found;
  }

  // Takes the numbers that do not fit 32 bits from the extra field of kind 1, in this order.
  void read_wide(std::string_view extra, const std::string& name,
                 std::initializer_list<std::uint64_t*> numbers) const {
    std::optional<std::string_view> wide;
    while (!extra.empty()) {
      constexpr std::size_t kHead = 4;
      const std::uint64_t bytes = extra.size() < kHead ? 0 : ZipFields(extra).number(2, 2);
      if (extra.size() < kHead + bytes) refuse("entry {} has a broken extra field", name);
      if (ZipFields(extra).number(0, 2) == 1) wide = extra.substr(kHead, bytes);
      extra.remove_prefix(kHead + bytes);
    }
    for (std::uint64_t* const number : numbers) {
      if (*number != kIn64) continue;
      if (!wide || wide->size() < sizeof(std::uint64_t)) {
        refuse("entry {} has no size or position", name);
      }
      *number = ZipFields(*wide).number(0, sizeof(std::uint64_t));
      wide->remove_prefix(sizeof(std::uint64_t));
    }
  }

  // Locates the contents after each entry's own header; entries must not overlap.
  std::vector<ZipEntry> check_entries(std::vector<Found> found) const {
    std::sort(found.begin(), found.end(),
              [](const Found& a, const Found& b) { return a.header < b.header; });
    std::vector<ZipEntry> entries;
    entries.reserve(found.size());
    std::set<std::string_view> names;
    std::int64_t position = 0;
    for (Found& each : found) {
      ZipEntry& entry = each.entry;
      const std::string name = shown(entry.name);
      if (each.header < position) refuse("entry {} overlaps another", name);
      entry.begin = begin_of(each);
      if (entry.bytes > directory_begin_ - entry.begin) {
        refuse("entry {} is not within the file", name);
      }
      position = entry.begin + entry.bytes;
      entries.push_back(std::move(entry));
    }
    for (const ZipEntry& entry : entries) {
      if (!names.insert(entry.name).second) refuse("entry {} occurs twice", shown(entry.name));
    }
    return entries;
  }

  std::int64_t begin_of(const Found& found) const {
    const std::string name = shown(found.entry.name);
    const auto name_bytes = static_cast<std::int64_t>(found.entry.name.size());
    if (kLocalBytes + name_bytes > directory_begin_ - found.header) {
      refuse("entry {} is not within the file", name);
    }
    const std::string header = bytes_at(found.header, kLocalBytes + name_bytes);
    const ZipFields fields(header);
    if (!header.starts_with(kLocalMark) || (fields.number(8, 2) == 0) != found.entry.is_stored ||
        fields.number(26, 2) != static_cast<std::uint64_t>(name_bytes) ||
        header.substr(kLocalBytes) != found.entry.name) {
      refuse("entry {} has another header than the directory says", name);
    }
    const std::int64_t begin =
        found.header + kLocalBytes + name_bytes + static_cast<std::int64_t>(fields.number(28, 2));
    if (begin > directory_begin_) refuse("entry {} is not within the file", name);
    return begin;
  }

  const ByteReader& file_;
  const std::string& place_;
  std::uint64_t count_ = 0;
  std::int64_t directory_begin_ = 0, directory_bytes_ = 0;
};

}  // namespace

std::vector<ZipEntry> read_zip_directory(const ByteReader& file, const std::string& place) {
  return ZipDirectoryReader(file, place).read();
}

}  // namespace scaletrain::format
