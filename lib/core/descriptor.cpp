#include "lib/core/descriptor.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>

#include <array>
#include <cerrno>

#include "lib/core/error.h"

namespace scaletrain::core {
namespace {

constexpr const char* kFilesRemedy = "raise the limit of open files: ulimit -n";

}  // namespace

Pipe make_pipe() {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) {
    throw Error(ExitCode::kMemory, "pipe", errno_text(errno), kFilesRemedy);
  }
  return {Descriptor(ends[0]), Descriptor(ends[1])};
}

Descriptor make_memory_file(const char* label, std::string_view bytes) {
  Descriptor fd(memfd_create(label, MFD_CLOEXEC));
  while (fd && !bytes.empty()) {
    const ssize_t written = write(fd.get(), bytes.data(), bytes.size());
    if (written < 0 && errno != EINTR) break;
    if (written > 0) bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  if (!fd || !bytes.empty()) {
    throw Error(ExitCode::kMemory, fmt::format("memfd of {}", label), errno_text(errno),
                "check memory and ulimit -n");
  }
  return fd;
}

std::string path_of(int fd) { return fmt::format("/proc/self/fd/{}", fd); }

Descriptor open_to_append(const std::string& path, const char* remedy) {
  Descriptor fd(open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  const bool exhausted = errno == EMFILE || errno == ENFILE;
  if (!fd && exhausted) throw Error(ExitCode::kMemory, path, errno_text(errno), kFilesRemedy);
  if (!fd) throw StorageError(path, errno_text(errno), remedy);
  return fd;
}

Descriptor open_nothing() {
  Descriptor fd(open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (!fd) throw Error(ExitCode::kMemory, "/dev/null", errno_text(errno), kFilesRemedy);
  return fd;
}

}  // namespace scaletrain::core
