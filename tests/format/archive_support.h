// A tar's regular files as libarchive reads them: what our reader and writer are compared with.
#pragma once

#include <archive.h>
#include <archive_entry.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace scaletrain::format {

struct ArchiveMember {
  std::string path, bytes;

  bool operator==(const ArchiveMember&) const = default;
};

// Every regular file of the tar in memory, up to its end or first error; `failed` tells which.
inline std::vector<ArchiveMember> read_with_archive(std::string_view tar, bool* failed = nullptr) {
  const std::unique_ptr<archive, int (*)(archive*)> reader(archive_read_new(), archive_read_free);
  archive_read_support_format_tar(reader.get());
  std::vector<ArchiveMember> members;
  bool sound = archive_read_open_memory(reader.get(), tar.data(), tar.size()) == ARCHIVE_OK;
  while (sound) {
    archive_entry* entry = nullptr;
    const int status = archive_read_next_header(reader.get(), &entry);
    if (status == ARCHIVE_EOF) break;
    sound = status == ARCHIVE_OK || status == ARCHIVE_WARN;
    if (!sound || archive_entry_filetype(entry) != AE_IFREG) continue;
    if (archive_entry_hardlink(entry) != nullptr) continue;
    ArchiveMember member;
    const char* const path = archive_entry_pathname(entry);
    member.path = path == nullptr ? "" : path;
    const void* block = nullptr;
    std::size_t size = 0;
    la_int64_t offset = 0;
    int got = ARCHIVE_OK;
    while ((got = archive_read_data_block(reader.get(), &block, &size, &offset)) == ARCHIVE_OK) {
      member.bytes.append(static_cast<const char*>(block), size);
    }
    sound = got == ARCHIVE_EOF;
    if (sound) members.push_back(std::move(member));
  }
  if (failed != nullptr) *failed = !sound;
  return members;
}

}  // namespace scaletrain::format
