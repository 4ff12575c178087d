#include "lib/format/tar/tar.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "lib/core/error.h"
#include "lib/core/printable.h"
#include "lib/core/text/placeholder.h"
#include "lib/format/tar/tar_header.h"

namespace scaletrain::format {
namespace {

// Far above any real name or set of attributes; keeps a hostile header from filling the memory.
constexpr std::int64_t kMaxExtendedBytes = 1 << 20;

constexpr std::int64_t kMinWindowBytes = 1 << 12, kMaxWindowBytes = 1 << 18;

constexpr const char* kTruncated = "the shard is truncated: copy or write it again";
constexpr const char* kDamaged =
    "the shard is damaged, or is not an uncompressed tar: copy or write it again";

bool all_zero(std::span<const std::byte> bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b == std::byte{0}; });
}

std::int64_t round_up(std::int64_t bytes) {
  return (bytes + kTarBlock - 1) / kTarBlock * kTarBlock;
}

// Links, devices, folders and FIFOs have a header but no data, whatever their size field contains.
bool has_data(char type) { return type < '1' || type > '6'; }

}  // namespace

TarReader::TarReader(const std::string& name, std::int64_t file_bytes, const ReadAt& read,
                     std::int64_t begin, std::int64_t window_bytes)
    : name_(name),
      file_bytes_(file_bytes),
      read_(read),
      offset_(begin),
      window_bytes_(window_bytes) {}

std::optional<TarMember> TarReader::next() {
  std::optional<TarMember> member(std::in_place);
  if (!next(*member)) member.reset();
  return member;
}

bool TarReader::next(TarMember& member) {
  member.begin = offset_;
  PaxRecords extended;  // pax records for the next member
  if (file_bytes_ == 0) fail(0, "the file is empty", kTruncated);
  if (offset_ == 0) refuse_if_placeholder();
  for (;;) {
    if (offset_ >= file_bytes_) {
      fail(file_bytes_, "ends without the two zero blocks that end a tar", kTruncated);
    }
    if (offset_ + kTarBlock > file_bytes_) fail(offset_, "ends inside a header", kTruncated);
    const std::span<const std::byte> block = fetch(offset_, kTarBlock);
    if (all_zero(block)) {
      if (member.begin != offset_) fail(offset_, "a zeroed header", kDamaged);
      check_end(offset_);
      return false;
    }
    try {
      const TarHeader header = parse_tar_header(block);
      const std::int64_t data = offset_ + kTarBlock;
      switch (header.type) {
        case 'x': {
          const PaxRecords pax = parse_pax(read_extended(header.type, data, header.bytes));
          if (pax.path) extended.path = pax.path;
          if (pax.bytes) extended.bytes = pax.bytes;
          extended.sparse = extended.sparse || pax.sparse;
          break;
        }
        case 'L': {
          const std::string name = read_extended(header.type, data, header.bytes);
          extended.path = name.substr(0, name.find('\0'));
          break;
        }
        case 'g':  // pax for all members that follow, comments in practice
        case 'K':  // the long target of a link
          read_extended(header.type, data, header.bytes);
          break;
        default:
          header.path_to(member.path);
          if (extended.path) member.path = *std::move(extended.path);
          member.regular = (header.type == '0' || header.type == '\0' || header.type == '7') &&
                           !member.path.ends_with('/');
          member.data = data;
          member.bytes = has_data(header.type) ? extended.bytes.value_or(header.bytes) : 0;
          if (header.sparse || extended.sparse) {
            fail(offset_, fmt::format("{} is a sparse file", shown_name(member.path)),
                 "write the shard without sparse files");
          }
          if (member.regular && member.bytes > kMaxMemberBytes) {
            fail(offset_,
                 fmt::format("{} has {} bytes; at most {} are allowed", shown_name(member.path),
                             member.bytes, kMaxMemberBytes),
                 kDamaged);
          }
          if (member.bytes > file_bytes_ - data) {
            fail(offset_,
                 fmt::format("{} has {} bytes, of which the file holds {}", shown_name(member.path),
                             member.bytes, file_bytes_ - data),
                 kTruncated);
          }
          offset_ = data + round_up(member.bytes);
          return true;
      }
      offset_ = data + round_up(header.bytes);
    } catch (const std::invalid_argument& error) {
      fail(offset_, error.what(), kDamaged);
    }
  }
}

void TarReader::refuse_if_placeholder() {
  const std::span<const std::byte> start = fetch(0, std::min(file_bytes_, kTarBlock));
  core::refuse_placeholder(name_, {reinterpret_cast<const char*>(start.data()), start.size()});
}

// Returns bytes of the file, from the window if possible. Valid until the next call.
std::span<const std::byte> TarReader::fetch(std::int64_t offset, std::int64_t bytes) {
  const std::int64_t window_end = window_begin_ + held_;
  if (offset < window_begin_ || offset + bytes > window_end) {
    if (held_ > 0) {
      // Between the headers of large members little is read; small ones come many at a time.
      window_bytes_ =
          offset > window_end ? kMinWindowBytes : std::min(2 * window_bytes_, kMaxWindowBytes);
    }
    // Bytes in the window are moved to its front rather than read again.
    const bool follows = offset >= window_begin_ && offset < window_end;
    const std::int64_t kept = follows ? window_end - offset : 0;
    const std::int64_t wanted = std::min(std::max(window_bytes_, bytes), file_bytes_ - offset);
    if (kept > 0)
      std::memmove(window_.data(), window_.data() + (offset - window_begin_),
                   static_cast<std::size_t>(kept));
    if (wanted > static_cast<std::int64_t>(window_.size())) {
      window_.resize(static_cast<std::size_t>(wanted));
    }
    window_begin_ = offset;
    held_ = 0;  // in case read_ throws
    read_(offset + kept, std::span(window_).subspan(static_cast<std::size_t>(kept),
                                                    static_cast<std::size_t>(wanted - kept)));
    held_ = wanted;
  }
  return std::span(window_).subspan(static_cast<std::size_t>(offset - window_begin_),
                                    static_cast<std::size_t>(bytes));
}

std::string TarReader::read_extended(char type, std::int64_t data, std::int64_t bytes) {
  if (bytes > kMaxExtendedBytes) {
    fail(offset_,
         fmt::format("an extended header ('{}') of {} bytes; at most {} are allowed", type, bytes,
                     kMaxExtendedBytes),
         kDamaged);
  }
  if (bytes > file_bytes_ - data) fail(offset_, "ends inside an extended header", kTruncated);
  const std::span<const std::byte> text = fetch(data, bytes);
  return {reinterpret_cast<const char*>(text.data()), text.size()};
}

// Called for a zero block at `offset`: a second one must follow, then only zeros.
void TarReader::check_end(std::int64_t offset) {
  if (file_bytes_ - offset < 2 * kTarBlock) {
    fail(offset, "ends after one of the two zero blocks that end a tar", kTruncated);
  }
  for (std::int64_t at = offset; at < file_bytes_; at += kTarBlock) {
    if (all_zero(fetch(at, std::min(kTarBlock, file_bytes_ - at)))) continue;
    if (at < offset + 2 * kTarBlock) fail(offset, "a zeroed header", kDamaged);
    fail(at, fmt::format("data after the end marker at byte {}", offset),
         "two archives were joined, and the second would be lost: write the shard again");
  }
}

void TarReader::fail(std::int64_t offset, const std::string& found,
                     const std::string& remedy) const {
  throw core::DataError(fmt::format("{}: byte {}", name_, offset), found, remedy);
}

std::string shown_name(std::string_view name) {
  constexpr std::size_t kShown = 120;
  if (name.size() <= kShown) return core::printable(name);
  return core::printable(name.substr(0, kShown)) + "...";
}

}  // namespace scaletrain::format
