// Bytes compressed as a test needs them.
#pragma once

#include <archive.h>
#include <archive_entry.h>

#include <cstddef>
#include <memory>
#include <stdexcept>
#include <string>

namespace scaletrain::storage {

// `filter`: ARCHIVE_FILTER_GZIP or ARCHIVE_FILTER_ZSTD.
inline std::string packed(const std::string& bytes, int filter) {
  const std::unique_ptr<archive, int (*)(archive*)> writer(archive_write_new(), archive_write_free);
  const std::unique_ptr<archive_entry, void (*)(archive_entry*)> entry(archive_entry_new(),
                                                                       archive_entry_free);
  archive_write_add_filter(writer.get(), filter);
  archive_write_set_format_raw(writer.get());
  std::string result(bytes.size() + (1 << 16), '\0');
  std::size_t used = 0;
  archive_entry_set_filetype(entry.get(), AE_IFREG);
  const bool is_written =
      archive_write_open_memory(writer.get(), result.data(), result.size(), &used) == ARCHIVE_OK &&
      archive_write_header(writer.get(), entry.get()) == ARCHIVE_OK &&
      archive_write_data(writer.get(), bytes.data(), bytes.size()) ==
          static_cast<la_ssize_t>(bytes.size()) &&
      archive_write_close(writer.get()) == ARCHIVE_OK;
  if (!is_written) throw std::runtime_error(archive_error_string(writer.get()));
  result.resize(used);
  return result;
}

}  // namespace scaletrain::storage
