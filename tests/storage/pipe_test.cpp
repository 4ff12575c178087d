#include "lib/storage/pipe.h"

#include <doctest/doctest.h>

#include "tests/storage/remote_support.h"

using namespace scaletrain::storage;  // NOLINT(google-build-using-namespace)
using std::chrono::seconds;

namespace {

std::string output_of(const std::string& command, seconds stall = seconds(20)) {
  return read_all(*make_pipe_storage(stall)->stream("pipe:" + command));
}

}  // namespace

TEST_CASE("a command's output is read to its end") {
  CHECK(output_of("printf abc; printf def") == "abcdef");
  CHECK(output_of("seq 1 100000").size() == 588895);  // 9 x 2 + 90 x 3 + ... + 100000's 7
  CHECK(output_of("true").empty());
}

TEST_CASE("a command that fails, or is still, is a storage error") {
  const std::string remedy = "\n  its own messages are in the log; run it by hand";
  CHECK(thrown_by([] { output_of("printf abc; exit 3"); }) ==
        "74 pipe:printf ...: the command failed: exit code 3" + remedy);
  CHECK(thrown_by([] { output_of("printf abc; kill -9 $$"); }) ==
        "74 pipe:printf ...: the command failed: killed by SIGKILL" + remedy);
  CHECK(thrown_by([] { output_of("sleep 600", seconds(1)); }) ==
        "74 pipe:sleep ...: the command failed: wrote nothing for 1 s" + remedy);
}

TEST_CASE("a command is only streamed") {
  CHECK(thrown_by([] { make_pipe_storage(seconds(1))->open("pipe:cat a.tar"); }) ==
        "65 pipe:cat ... a.tar: a command's output is read from the front only\n"
        "  name a folder in /data/cache, where it is kept as a file");
}
