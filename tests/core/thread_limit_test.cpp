#include "lib/core/thread_limit.h"

#include <doctest/doctest.h>

#include <cerrno>
#include <system_error>

#include "lib/core/error.h"

namespace scaletrain::core {
namespace {

TEST_CASE("a thread that the system refuses is an error of kMemory that names the limits") {
  const std::system_error refused(EAGAIN, std::generic_category());
  const std::system_error other(EIO, std::generic_category());
  CHECK(is_thread_refusal(refused));
  CHECK(!is_thread_refusal(other));
  CHECK(exit_code_of(refused) == ExitCode::kMemory);
  const std::string text =
      "cannot start a thread: Resource temporarily unavailable (EAGAIN)\n  raise the limit of "
      "processes and threads: ulimit -u, --pids-limit of a container, TasksMax of a service "
      "(pids.max of the cgroup)";
  CHECK(describe(refused) == text);
}

TEST_CASE("threads that are tried have ended afterwards") {
  CHECK_NOTHROW(try_threads(0));
  CHECK_NOTHROW(try_threads(4));
}

}  // namespace
}  // namespace scaletrain::core
