#include "lib/core/disk/exclusive_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "lib/core/descriptor.h"

namespace scaletrain::core {
namespace {

// Returns an errno; 0 on success.
int write_synced(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno;
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return ::fsync(fd) == 0 ? 0 : errno;
}

}  // namespace

Exclusive name_exclusively(const std::filesystem::path& temporary,
                           const std::filesystem::path& path, std::string_view bytes) {
  if (::link(temporary.c_str(), path.c_str()) == 0) return {.is_made = true};
  if (errno == EEXIST) return {};
  Exclusive result{.link_error = errno};
  const Descriptor fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  if (!fd) {
    if (errno != EEXIST) result.error = errno;
    return result;
  }
  result.error = write_synced(fd.get(), bytes);
  result.is_made = result.error == 0;
  if (!result.is_made) ::unlink(path.c_str());
  return result;
}

}  // namespace scaletrain::core
