#include "lib/observe/line_writer.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>
#include <utility>

#include "lib/core/error.h"
#include "lib/core/log.h"

namespace scaletrain::observe {

namespace {

bool ends_inside_a_line(int fd) {
  const off_t size = lseek(fd, 0, SEEK_END);
  char last = '\n';
  return size > 0 && pread(fd, &last, 1, size - 1) == 1 && last != '\n';
}

bool is_empty(int fd) {
  struct stat status = {};
  return fstat(fd, &status) == 0 && status.st_size == 0;
}

}  // namespace

LineWriter::LineWriter(std::filesystem::path file, std::shared_ptr<core::Housekeeping> housekeeping,
                       std::string first)
    : file_(std::move(file)), housekeeping_(std::move(housekeeping)), first_(std::move(first)) {
  open_file();
}

void LineWriter::open_file() {
  core::Descriptor fd(open(file_.c_str(), O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, 0644));
  if (!fd) return report(errno);
  torn_ = ends_inside_a_line(fd.get());
  fd_ = std::move(fd);
}

// The file may have been removed, or replaced by another one.
void LineWriter::keep_file() {
  struct stat held = {}, named = {};
  const bool is_there = stat(file_.c_str(), &named) == 0;
  if (!is_there && errno != ENOENT) return;
  if (is_there && fstat(fd_.get(), &held) == 0 && held.st_ino == named.st_ino &&
      held.st_dev == named.st_dev) {
    return;
  }
  if (!is_there)
    core::warn("{}: was removed during the run: a new file is started", file_.string());
  std::error_code ignored;
  std::filesystem::create_directories(file_.parent_path(), ignored);
  open_file();
}

void LineWriter::append(std::string line) {
  if (!fd_) open_file();
  if (!fd_) return;
  keep_file();
  if (!first_.empty() && is_empty(fd_.get())) line.insert(line.size() - 1, first_);
  if (torn_) line.insert(0, 1, '\n');
  line += '\n';
  std::string_view rest = line;
  while (!rest.empty()) {
    const ssize_t written = ::write(fd_.get(), rest.data(), rest.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) {  // also after a partial write: a full disk and a limit accept a part
      report(errno);
      break;
    }
    rest.remove_prefix(static_cast<std::size_t>(written));
  }
  const std::size_t done = line.size() - rest.size();
  if (done > 0) torn_ = line[done - 1] != '\n';
}

void LineWriter::report(int error) {
  housekeeping_->failed(file_.string(), core::errno_text(error),
                        "training goes on without the lines that cannot be written");
}

}  // namespace scaletrain::observe
