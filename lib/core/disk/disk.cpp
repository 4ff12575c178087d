#include "lib/core/disk/disk.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "lib/core/descriptor.h"
#include "lib/core/disk/direct_file.h"
#include "lib/core/disk/disk_faults.h"
#include "lib/core/disk/read_faults.h"
#include "lib/core/disk/temporary_name.h"

namespace scaletrain::core {
namespace {

namespace fs = std::filesystem;

// Files of at least this size are written past the page cache.
constexpr std::int64_t kLargeFile = 16 << 20;

void write_all(int fd, std::span<const std::byte> bytes, const fs::path& path) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) throw_disk_fault(path, "write", errno);
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

class SystemFile : public DiskFile {
 public:
  SystemFile(fs::path path, Descriptor fd) : path_(std::move(path)), fd_(std::move(fd)) {}

  void write(std::span<const std::byte> bytes) override { write_all(fd_.get(), bytes, path_); }
  void sync() override {
    if (::fsync(fd_.get()) != 0) throw_disk_fault(path_, "sync", errno);
  }

 private:
  fs::path path_;
  Descriptor fd_;
};

class LargeFile : public DiskFile {
 public:
  LargeFile(fs::path path, Descriptor fd) : file_(std::move(path), std::move(fd)) {}

  void write(std::span<const std::byte> bytes) override { file_.write(bytes); }
  void write_lasting(std::span<const std::byte> bytes) override { file_.write_lasting(bytes); }
  void sync() override { file_.sync(); }

 private:
  DirectFile file_;
};

// Refuses a path that is, or is below, a link to a missing target, for which mkdir only returns
// EEXIST.
void refuse_dead_link(const fs::path& path) {
  std::error_code ignored;
  for (fs::path part = path; part.has_relative_path(); part = part.parent_path()) {
    if (!fs::is_symlink(part, ignored) || fs::exists(part, ignored)) continue;
    throw StorageError(
        part.string(),
        "is a link to " + fs::read_symlink(part, ignored).string() + ", which does not exist",
        "make that folder, or remove the link");
  }
}

class SystemDisk : public Disk {
 public:
  std::unique_ptr<DiskFile> create(const fs::path& path, std::int64_t expected_bytes) override {
    Descriptor fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
    if (!fd) throw_disk_fault(path, "create", errno);
    // KEEP_SIZE reserves blocks, while the size grows with the written bytes. A file system without
    // the call is accepted; one without the space is an error.
    if (expected_bytes > 0 && ::fallocate(fd.get(), FALLOC_FL_KEEP_SIZE, 0, expected_bytes) != 0 &&
        errno == ENOSPC) {
      throw_disk_fault(path, fmt::format("reserve {} bytes", expected_bytes), ENOSPC);
    }
    if (expected_bytes >= kLargeFile && begin_direct(fd.get())) {
      return std::make_unique<LargeFile>(path, std::move(fd));
    }
    return std::make_unique<SystemFile>(path, std::move(fd));
  }

  void make_folders(const fs::path& path) override {
    std::error_code error;
    fs::create_directories(path, error);
    if (error == std::errc::file_exists) refuse_dead_link(path);
    if (error) throw_disk_fault(path, "make the folder", error.value());
  }

  void sync_folder(const fs::path& path) override {
    const int fd = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) throw_disk_fault(path, "open the folder", errno);
    const int result = ::fsync(fd);
    const int error = errno;
    ::close(fd);
    // Some network file systems cannot sync a folder and return EINVAL.
    if (result != 0 && error != EINVAL) throw_disk_fault(path, "sync the folder", error);
  }

  void rename(const fs::path& from, const fs::path& to) override {
    if (::rename(from.c_str(), to.c_str()) != 0) {
      throw_disk_fault(to, fmt::format("rename {} to this", from.filename().string()), errno);
    }
  }

  void make_link(const fs::path& target, const fs::path& link) override {
    if (::symlink(target.c_str(), link.c_str()) != 0)
      throw_disk_fault(link, "make the link", errno);
  }

  void remove_all(const fs::path& path) override {
    std::error_code error;
    fs::remove_all(path, error);
    if (error) throw_disk_fault(path, "remove", error.value());
  }

  std::int64_t free_bytes(const fs::path& path) override {
    struct statvfs status = {};
    if (::statvfs(path.c_str(), &status) != 0) throw_disk_fault(path, "ask for free space", errno);
    return static_cast<std::int64_t>(status.f_bavail) * static_cast<std::int64_t>(status.f_frsize);
  }

  void link_file(const fs::path& file, const fs::path& name) override {
    if (::link(file.c_str(), name.c_str()) != 0) {
      throw_disk_fault(name, fmt::format("link {} to this", file.string()), errno);
    }
  }
};

// The name differs by thread, so that threads that write the same file do not share it.
fs::path temporary_beside(const fs::path& path) {
  return path.parent_path() / temporary_name("." + path.filename().string(), ::gettid());
}

}  // namespace

Disk& system_disk() {
  static SystemDisk disk;
  return disk;
}

void write_durably(Disk& disk, const fs::path& path, std::string_view bytes) {
  const fs::path temporary = temporary_beside(path);
  try {
    const auto file = disk.create(temporary);
    file->write(std::as_bytes(std::span(bytes)));
    file->sync();
    disk.rename(temporary, path);
  } catch (const StorageError&) {
    std::error_code ignored;
    fs::remove(temporary, ignored);
    throw;
  }
  disk.sync_folder(path.has_parent_path() ? path.parent_path() : ".");
}

void replace_link(Disk& disk, const fs::path& target, const fs::path& link) {
  const fs::path temporary = temporary_beside(link);
  disk.remove_all(temporary);
  try {
    disk.make_link(target, temporary);
    disk.rename(temporary, link);
  } catch (const StorageError&) {
    std::error_code ignored;
    fs::remove(temporary, ignored);
    throw;
  }
  disk.sync_folder(link.parent_path());
}

std::string read_file(const fs::path& path, std::int64_t max_bytes, ExitCode code) {
  const auto refuse = [&](const std::string& reason, const std::string& remedy) {
    throw Error(code, path.string(), reason, remedy);
  };
  // O_NONBLOCK: opening a FIFO without a writer must not block.
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) {
    throw_read_fault(path, errno);
    refuse(fmt::format("cannot be read: {}", errno_text(errno)), "check the path");
  }
  struct stat status = {};
  if (::fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) {
    ::close(fd);
    refuse("is not a regular file", "name a file, not a folder or a device");
  }
  if (status.st_size > max_bytes) {
    ::close(fd);
    refuse(fmt::format("has {} bytes", status.st_size),
           fmt::format("at most {} bytes are read here", max_bytes));
  }
  std::string text(static_cast<std::size_t>(status.st_size), '\0');
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t count = ::read(fd, text.data() + done, text.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) {
      const int error = errno;
      ::close(fd);
      throw_read_fault(path, error);
      refuse(fmt::format("cannot be read: {}", errno_text(error)), "check the disk");
    }
    if (count == 0) break;  // it shrank meanwhile
    done += static_cast<std::size_t>(count);
  }
  ::close(fd);
  text.resize(done);
  return text;
}

}  // namespace scaletrain::core
