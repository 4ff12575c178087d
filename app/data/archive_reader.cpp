#include "app/data/archive_reader.h"

#include <archive.h>
#include <archive_entry.h>
#include <fmt/format.h>

#include <memory>
#include <utility>

#include "lib/core/error.h"
#include "lib/format/tar.h"

namespace scaletrain::app {
namespace {

constexpr std::size_t kArchiveBlockBytes = 1 << 18;
constexpr std::int64_t kMaxDecompressedBytes = std::int64_t{16} << 30;

using Archive = std::unique_ptr<archive, int (*)(archive*)>;

[[noreturn]] void refuse_archive(const std::string& path, archive* reader) {
  const char* const text = archive_error_string(reader);
  throw core::DataError(path, text == nullptr ? "cannot be read" : text,
                        "the file is damaged, or in a format that is not known here");
}

Archive open_archive(const std::string& path, bool is_tar) {
  Archive reader(archive_read_new(), archive_read_free);
  archive_read_support_filter_all(reader.get());
  if (is_tar) {
    archive_read_support_format_tar(reader.get());
  } else {
    archive_read_support_format_raw(reader.get());
    archive_read_support_format_empty(reader.get());
  }
  if (archive_read_open_filename(reader.get(), path.c_str(), kArchiveBlockBytes) != ARCHIVE_OK) {
    refuse_archive(path, reader.get());
  }
  return reader;
}

// The next member; false at the end. A header that is damaged is no header to go on from.
bool next_member(const std::string& path, const Archive& reader, archive_entry** entry) {
  const int status = archive_read_next_header(reader.get(), entry);
  if (status == ARCHIVE_EOF) return false;
  if (status != ARCHIVE_OK && status != ARCHIVE_WARN) refuse_archive(path, reader.get());
  return true;
}

// The member's bytes, as many as there are: the size that it names is not believed.
std::string member_bytes(const std::string& path, const Archive& reader, std::int64_t most) {
  std::string bytes;
  const void* block = nullptr;
  std::size_t size = 0;
  la_int64_t offset = 0;
  int status = ARCHIVE_OK;
  while ((status = archive_read_data_block(reader.get(), &block, &size, &offset)) == ARCHIVE_OK) {
    if (offset != static_cast<la_int64_t>(bytes.size()) ||
        static_cast<std::int64_t>(bytes.size() + size) > most) {
      throw core::DataError(path, fmt::format("a member is sparse or above {} bytes", most),
                            "write it without");
    }
    bytes.append(static_cast<const char*>(block), size);
  }
  if (status != ARCHIVE_EOF) refuse_archive(path, reader.get());
  return bytes;
}

}  // namespace

std::string read_decompressed(const std::string& path) {
  const Archive reader = open_archive(path, false);
  archive_entry* entry = nullptr;
  if (!next_member(path, reader, &entry)) return "";
  return member_bytes(path, reader, kMaxDecompressedBytes);
}

void for_each_archived(const std::string& path,
                       const std::function<void(const std::string&, std::string)>& use) {
  const Archive reader = open_archive(path, true);
  archive_entry* entry = nullptr;
  while (next_member(path, reader, &entry)) {
    const char* const name = archive_entry_pathname(entry);
    if (archive_entry_filetype(entry) != AE_IFREG || name == nullptr) continue;
    const std::string copied = name;
    use(copied, member_bytes(fmt::format("{}: {}", path, format::shown_name(copied)), reader,
                             format::kMaxMemberBytes));
  }
}

}  // namespace scaletrain::app
