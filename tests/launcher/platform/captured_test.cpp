#include "launcher/platform/captured.h"

#include <doctest/doctest.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

// Of the questions whether a child has ended, the one that takes until it has: its answer is not
// true any more when it is given. 0: none.
int slow_question = 0;

}  // namespace

// In the place of libc's, for all tests of this program.
extern "C" int waitid(idtype_t type, id_t id, siginfo_t* info, int options) {
  const auto ask = [&](siginfo_t* answer, int how) {
    return static_cast<int>(syscall(SYS_waitid, type, id, answer, how, nullptr));
  };
  const int result = ask(info, options);
  if (slow_question > 0 && --slow_question == 0) ask(nullptr, WEXITED | WNOWAIT);
  return result;
}

namespace scaletrain::launcher {
namespace {

Captured run_shell(const char* script, std::chrono::milliseconds limit) {
  return run_captured({.arguments = {"/bin/sh", "-c", script}, .variables = {{"SAID", "out"}}},
                      limit);
}

TEST_CASE("run_captured takes both streams and gives an empty input") {
  const Captured done =
      run_shell("cat; echo $SAID; echo err >&2; exit 3", std::chrono::seconds(30));
  CHECK(done.output == "out\n");
  CHECK(done.error == "err\n");
  CHECK_FALSE(done.ok());
  CHECK(done.trouble() == "exit code 3: err");
  CHECK(run_shell("echo it is so", std::chrono::seconds(30)).ok());
}

TEST_CASE("run_captured keeps the beginning of a long output and does not stop its program") {
  const Captured done =
      run_shell("head -c 2097152 /dev/zero; echo done >&2", std::chrono::seconds(30));
  CHECK(done.output.size() == std::size_t{1} << 20);
  CHECK(done.error == "done\n");
}

TEST_CASE("run_captured sees the end of a program that ends between two looks") {
  constexpr std::chrono::seconds kLimit{5};
  for (const int question : {1, 2, 3, 4}) {
    slow_question = question;
    const Captured done = run_shell("exec >&-; sleep 0.05; exec 2>&-; exec sleep 0.2", kLimit);
    slow_question = 0;
    CHECK(done.ok());
    CHECK(done.seconds < kLimit.count());
  }
}

TEST_CASE("run_captured ends what takes too long") {
  const Captured slow = run_shell("exec sleep 100", std::chrono::milliseconds(50));
  CHECK(slow.timed_out);
  CHECK_FALSE(slow.ok());
}

}  // namespace
}  // namespace scaletrain::launcher
