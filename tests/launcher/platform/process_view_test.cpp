#include "launcher/platform/process_view.h"

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <vector>

namespace scaletrain::launcher {
namespace {

TEST_CASE("a stopped process differs from a running one") {
  const pid_t child = fork();
  if (child == 0) {
    while (true) pause();
  }
  kill(child, SIGSTOP);
  waitpid(child, nullptr, WUNTRACED);
  CHECK(process_state(child) == 'T');
  CHECK(is_stopped(process_state(child)));
  CHECK(describe_process(child).starts_with("stopped by a signal (T)"));
  const std::vector<pid_t> threads = threads_of(child);  // a sanitizer adds one of its own
  CHECK(std::count(threads.begin(), threads.end(), child) == 1);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  CHECK(process_state(child) == ' ');
  CHECK(threads_of(child).empty());
  CHECK_FALSE(is_stopped(process_state(getpid())));
}

}  // namespace
}  // namespace scaletrain::launcher
