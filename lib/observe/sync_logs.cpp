#include "lib/observe/sync_logs.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "lib/core/descriptor.h"
#include "lib/core/error.h"

namespace scaletrain::observe {

void sync_logs(const std::filesystem::path& run, core::Housekeeping& housekeeping,
               const std::function<void()>& progress) {
  for (const char* const name : {"metrics.jsonl", "journal.jsonl", "console.log"}) {
    progress();
    const std::filesystem::path file = run / name;
    const core::Descriptor fd(open(file.c_str(), O_WRONLY | O_CLOEXEC | O_NONBLOCK));
    if (!fd || ::fsync(fd.get()) == 0) continue;
    const int error = errno;
    housekeeping.failed(file.string(), "cannot sync: " + core::errno_text(error),
                        "its last lines may be lost if the machine goes down");
  }
}

}  // namespace scaletrain::observe
