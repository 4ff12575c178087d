#include "app/worker/torch_error.h"

#include <fmt/format.h>

#include <string>

#include "lib/core/log.h"
#include "lib/core/thread_limit.h"
#include "lib/dist/out_of_memory.h"

namespace scaletrain::app {

std::unique_ptr<core::Error> translate(const std::exception& error, int rank) {
  const std::string place = fmt::format("rank {}", rank);
  const std::string text = dist::text_of(error);
  if (dist::is_out_of_memory(error)) {
    return std::make_unique<core::OutOfMemoryError>(place, text, dist::kLessMemory);
  }
  if (core::is_thread_refusal(error)) {
    return std::make_unique<core::Error>(core::ExitCode::kMemory, place, core::kNoThread,
                                         core::kMoreThreads);
  }
  return std::make_unique<core::InternalError>(place, text);
}

int run_translated(int rank, const std::function<void()>& body) {
  try {
    body();
    return 0;
  } catch (const core::Error&) {
    throw;
  } catch (const std::exception& error) {
    const auto ours = translate(error, rank);
    core::log_line(ours->what());
    return static_cast<int>(ours->exit_code());
  }
}

}  // namespace scaletrain::app
