#include "lib/dist/lost_peer.h"

#include <fmt/format.h>

#include "lib/core/error.h"
#include "lib/core/thread_limit.h"
#include "lib/dist/foreign_text.h"
#include "lib/dist/out_of_memory.h"

namespace scaletrain::dist {

void throw_lost(int rank, const std::string& what, const std::string& cause) {
  throw core::StoppedError(
      fmt::format("rank {}", rank),
      fmt::format("{} not completed: a peer was lost or the timeout expired ({})", what, cause),
      "the log of the rank that failed first has the cause; resume from the newest checkpoint");
}

void throw_lost(int rank, const std::string& what, const std::exception& cause) {
  throw_thread_refusal(fmt::format("rank {}", rank), cause);
  if (says_out_of_memory(cause.what())) {  // NCCL's last line has the cause
    throw core::OutOfMemoryError(
        fmt::format("rank {}", rank),
        fmt::format("{} not completed: memory ran out ({})", what, cause.what()), kLessMemory);
  }
  throw_lost(rank, what, foreign_text(cause));
}

void throw_thread_refusal(const std::string& place, const std::exception& cause) {
  if (!core::is_thread_refusal(cause)) return;
  throw core::Error(core::ExitCode::kMemory, place, core::kNoThread, core::kMoreThreads);
}

}  // namespace scaletrain::dist
