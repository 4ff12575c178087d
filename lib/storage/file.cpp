// Local files as a Storage.
#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "lib/core/disk/disk.h"
#include "lib/core/disk/exclusive_file.h"
#include "lib/core/error.h"
#include "lib/storage/storage.h"

namespace scaletrain::storage {
namespace {

// ENOENT and similar errors persist across restarts of a job; other errors may be temporary.
[[noreturn]] void fail(const std::string& path, int error) {
  switch (error) {
    case ENOENT:
    case ENOTDIR:
      throw AbsentError(path, core::errno_text(error), "check the path");
    case EISDIR:
    case EACCES:
    case EPERM:
    case ELOOP:
    case ENAMETOOLONG:
      throw core::DataError(path, core::errno_text(error), "check the path");
    default:
      throw core::StorageError(path, core::errno_text(error));
  }
}

class FileObject : public Object {
 public:
  explicit FileObject(const std::string& path) : path_(path) {
    // O_NONBLOCK: opening a FIFO must not wait for its writer; it is refused below.
    fd_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd_ < 0) fail(path, errno);
    struct stat status {};
    if (::fstat(fd_, &status) != 0) {
      const int error = errno;
      ::close(fd_);
      fail(path, error);
    }
    if (!S_ISREG(status.st_mode)) {
      ::close(fd_);
      throw core::DataError(path, "not a regular file", "check the path");
    }
    identity_.bytes = status.st_size;
    identity_.mtime_ns =
        std::int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec;
  }
  ~FileObject() override { ::close(fd_); }
  FileObject(const FileObject&) = delete;
  FileObject& operator=(const FileObject&) = delete;

  Identity identity() const override { return identity_; }

  void read(std::int64_t offset, std::span<std::byte> out) const override {
    std::size_t done = 0;
    while (done < out.size()) {
      const ssize_t got = ::pread(fd_, out.data() + done, out.size() - done,
                                  offset + static_cast<std::int64_t>(done));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) fail(path_, errno);
      if (got == 0) {
        throw core::DataError(
            path_,
            fmt::format("ends at byte {} while bytes {} to {} are read", ::lseek(fd_, 0, SEEK_END),
                        offset, offset + static_cast<std::int64_t>(out.size())),
            "the file is truncated, or was cut while it was read");
      }
      done += static_cast<std::size_t>(got);
    }
  }

 private:
  std::string path_;
  int fd_ = -1;
  Identity identity_;
};

class FileStorage : public Storage {
 public:
  std::unique_ptr<Object> open(const std::string& path) const override {
    return std::make_unique<FileObject>(path);
  }

  std::vector<Entry> list(const std::string& folder) const override {
    const std::unique_ptr<DIR, int (*)(DIR*)> stream(::opendir(folder.c_str()), ::closedir);
    if (!stream) fail(folder, errno);
    std::vector<Entry> entries;
    for (errno = 0;; errno = 0) {
      const dirent* entry = ::readdir(stream.get());
      if (entry == nullptr) break;
      const std::string name = &entry->d_name[0];
      if (name == "." || name == "..") continue;
      bool is_folder = entry->d_type == DT_DIR;
      if (entry->d_type == DT_LNK || entry->d_type == DT_UNKNOWN) {
        struct stat status {};
        is_folder = ::stat(fmt::format("{}/{}", folder, name).c_str(), &status) == 0 &&
                    S_ISDIR(status.st_mode);
      }
      entries.push_back({name, is_folder});
    }
    if (errno != 0) fail(folder, errno);
    std::sort(entries.begin(), entries.end(),
              [](const Entry& a, const Entry& b) { return a.name < b.name; });
    return entries;
  }

  void write(const std::string& path, std::string_view bytes) const override {
    core::write_durably(core::system_disk(), path, bytes);
  }

  bool write_if_absent(const std::string& path, std::string_view bytes) const override {
    core::Disk& disk = core::system_disk();
    const std::filesystem::path folder = std::filesystem::path(path).parent_path();
    // One name a thread, so that writers of one process do not share a temporary file.
    const std::string temporary = fmt::format("{}.new.{}", path, ::gettid());
    core::write_durably(disk, temporary, bytes);
    // rename(2) would replace an existing file.
    const core::Exclusive result = core::name_exclusively(temporary, path, bytes);
    disk.remove_all(temporary);
    if (result.error != 0) throw core::StorageError(path, core::errno_text(result.error));
    disk.sync_folder(folder.empty() ? "." : folder);
    return result.is_made;
  }
};

}  // namespace

const Storage& file_storage() {
  static const FileStorage storage;
  return storage;
}

}  // namespace scaletrain::storage
