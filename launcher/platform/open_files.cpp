#include "launcher/platform/open_files.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>

#include "lib/core/error.h"

namespace scaletrain::launcher {
namespace {

// Shards, logs, threads' own; and a rank's connections to the others and theirs to its store.
constexpr rlim_t kFilesOfRank = 64, kFilesOfPeer = 4;

}  // namespace

void provide_open_files(int ranks) {
  const rlim_t wanted = kFilesOfRank + kFilesOfPeer * static_cast<rlim_t>(ranks);
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= wanted) return;
  limit.rlim_cur = std::min(wanted, limit.rlim_max);
  setrlimit(RLIMIT_NOFILE, &limit);
  if (limit.rlim_cur >= kFilesOfRank) return;
  throw core::Error(
      core::ExitCode::kMemory, "open files",
      fmt::format("at most {} are allowed, and a worker needs {}", limit.rlim_cur, kFilesOfRank),
      "raise the limit: ulimit -n 65536");
}

}  // namespace scaletrain::launcher
