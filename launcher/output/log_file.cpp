#include "launcher/output/log_file.h"

#include <unistd.h>

#include <cerrno>

#include "lib/core/error.h"
#include "lib/core/log.h"

namespace scaletrain::launcher {

LogFile::LogFile(std::string path) : path_(std::move(path)) {
  if (!path_.empty()) {
    file_ = core::open_to_append(path_, "name another folder with --log-dir");
  }
}

void LogFile::append(std::string_view text) {
  while (file_ && !text.empty()) {
    const ssize_t count = write(file_.get(), text.data(), text.size());
    if (count > 0) {
      text.remove_prefix(static_cast<std::size_t>(count));
    } else if (errno != EINTR) {
      core::warn("{}: {}; nothing more is written to it", path_, core::errno_text(errno));
      file_.reset();
    }
  }
}

}  // namespace scaletrain::launcher
