#include "app/data/files/stop.h"

#include <fmt/format.h>

#include "lib/core/error.h"
#include "lib/core/process/signals.h"
#include "lib/core/text/url.h"

namespace scaletrain::app {

void leave_if_stopped(const std::string& folder, std::size_t whole) {
  const core::StopReason reason = core::stop_reason();
  if (reason == core::StopReason::kNone) return;
  const std::string shown = core::shown_path(folder);
  throw core::Error(
      reason == core::StopReason::kInterrupt ? core::ExitCode::kInterrupted
                                             : core::ExitCode::kTemporary,
      "stopped",
      whole == 0 ? fmt::format("nothing was written to {}", shown)
                 : fmt::format("{} in {}",
                               whole == 1 ? "the first shard is"
                                          : fmt::format("the first {} shards are", whole),
                               shown),
      whole == 0 ? "" : "remove them before you begin again, or choose another --name");
}

}  // namespace scaletrain::app
