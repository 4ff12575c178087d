#include "lib/core/error.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <new>
#include <system_error>

#include "lib/core/thread_limit.h"

namespace scaletrain::core {

Error::Error(ExitCode code, std::string place, std::string found, std::string remedy)
    : std::runtime_error(remedy.empty() ? fmt::format("{}: {}", place, found)
                                        : fmt::format("{}: {}\n  {}", place, found, remedy)),
      code_(code),
      place_(std::move(place)),
      found_(std::move(found)),
      remedy_(std::move(remedy)) {}

std::string errno_text(int error) {
  if (error == EFBIG) return "File too large (EFBIG: the limit of file sizes is ulimit -f)";
  const char* const name = strerrorname_np(error);
  return fmt::format("{} ({})",
                     strerrordesc_np(error) != nullptr ? strerrordesc_np(error) : "error",
                     name != nullptr ? name : fmt::format("errno {}", error));
}

std::string describe(const std::exception& error) {
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr) return "out of memory on the host";
  if (is_thread_refusal(error)) {
    return fmt::format("{}\n  {}", kNoThread, kMoreThreads);
  }
  return error.what();
}

ExitCode exit_code_of(const std::exception& error) {
  if (const auto* ours = dynamic_cast<const Error*>(&error)) return ours->exit_code();
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr) return ExitCode::kMemory;
  // A thread that cannot be started, a folder that cannot be opened.
  if (const auto* of_system = dynamic_cast<const std::system_error*>(&error)) {
    const std::error_condition found = of_system->code().default_error_condition();
    if (found == std::errc::resource_unavailable_try_again ||
        found == std::errc::not_enough_memory || found == std::errc::too_many_files_open ||
        found == std::errc::too_many_files_open_in_system) {
      return ExitCode::kMemory;
    }
  }
  return ExitCode::kFailure;
}

}  // namespace scaletrain::core
