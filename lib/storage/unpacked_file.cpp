#include "lib/storage/unpacked_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <span>
#include <system_error>
#include <vector>

#include "lib/core/descriptor.h"
#include "lib/core/disk/disk.h"
#include "lib/core/error.h"
#include "lib/core/text/url.h"

namespace scaletrain::storage {
namespace {

constexpr std::size_t kUnpackedPiece = 1 << 20;
constexpr const char* kElsewhere = "set TMPDIR to a folder with more free space";

[[noreturn]] void fail_temporary(const std::string& folder, int error) {
  throw UnpackRoomError(folder, core::errno_text(error), kElsewhere);
}

[[noreturn]] void fail_for_room(const std::string& path, const std::string& folder,
                                std::int64_t room) {
  throw UnpackRoomError(
      core::shown_path(path),
      fmt::format("has more than {} bytes decompressed, half of what is free in {}", room, folder),
      kElsewhere);
}

std::string temporary_folder() {
  std::error_code failed;
  std::string folder = std::filesystem::temp_directory_path(failed).string();
  if (failed) throw UnpackRoomError("TMPDIR", failed.message(), kElsewhere);
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
  const std::int64_t room = core::system_disk().free_bytes(folder) / 2;
  const auto unpacked = unpack(*packed, core::shown_path(path),
                               {kMaxUnpackedBytes, "it is no shard: write it in parts"}, packing);
  std::vector<std::byte> piece(kUnpackedPiece);
  std::int64_t bytes = 0;
  while (const std::size_t got = unpacked->read(piece)) {
    bytes += static_cast<std::int64_t>(got);
    if (bytes > room) fail_for_room(path, folder, room);
    write_temporary(fd, std::span(piece).first(got), folder);
  }
  return file_storage().open(core::path_of(fd.get()));
}

}  // namespace scaletrain::storage
