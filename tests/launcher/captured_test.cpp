#include "launcher/captured.h"

#include <doctest/doctest.h>

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

TEST_CASE("run_captured ends what takes too long") {
  const Captured slow = run_shell("exec sleep 100", std::chrono::milliseconds(50));
  CHECK(slow.timed_out);
  CHECK_FALSE(slow.ok());
}

}  // namespace
}  // namespace scaletrain::launcher
