#include "lib/storage/unpacked_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <span>
#include <system_error>
#include <vector>

#include "lib/core/descriptor.h"
#include "lib/core/disk.h"
#include "lib/core/error.h"
#include "lib/core/url.h"

namespace scaletrain::storage {
namespace {

constexpr std::size_t kUnpackedPiece = 1 << 20;
constexpr const char* kElsewhere = "name a folder with more room in TMPDIR";

[[noreturn]] void fail_temporary(const std::string& folder, int error) {
  throw core::StorageError(folder, core::errno_text(error), kElsewhere);
}

std::string temporary_folder() {
  std::error_code failed;
  std::string folder = std::filesystem::temp_directory_path(failed).string();
  if (failed) throw core::StorageError("TMPDIR", failed.message(), kElsewhere);
  return folder;
}

core::Descriptor nameless_file(const std::string& folder) {
  std::string name = folder + "/scaletrain.XXXXXX";
  core::Descriptor fd(::mkostemp(name.data(), O_CLOEXEC));
  if (!fd) fail_temporary(folder, errno);
  ::unlink(name.c_str());
  return fd;
}

void write_temporary(const core::Descriptor& fd, std::span<const std::byte> bytes,
                     const std::string& folder) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd.get(), bytes.data(), bytes.size());
    if (written < 0 && errno != EINTR) fail_temporary(folder, errno);
    if (written > 0) bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

}  // namespace

std::unique_ptr<Object> open_unpacked(const Storage& origin, const std::string& path,
                                      Packing packing) {
  const auto packed = origin.stream(path);
  const std::string folder = temporary_folder();
  const core::Descriptor fd = nameless_file(folder);
  const UnpackLimit most{
      std::min(core::system_disk().free_bytes(folder) / 2, kMaxUnpackedBytes),
      fmt::format("it is no shard, or too large for half of what is free in {}: {}", folder,
                  kElsewhere)};
  const auto unpacked = unpack(*packed, core::shown_path(path), most, packing);
  std::vector<std::byte> piece(kUnpackedPiece);
  while (const std::size_t got = unpacked->read(piece)) {
    write_temporary(fd, std::span(piece).first(got), folder);
  }
  return file_storage().open(core::path_of(fd.get()));
}

}  // namespace scaletrain::storage
