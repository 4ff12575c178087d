#include "launcher/workers/failure_file.h"

#include <doctest/doctest.h>

#include <csignal>

#include "tests/temporary_folder.h"

namespace scaletrain::launcher {
namespace {

TEST_CASE("failure.json has every field in its order, and null for what is not known") {
  const Failure failure{.host = "h",
                        .rank = 1,
                        .local_rank = 0,
                        .pid = 9,
                        .status = {.signal = SIGSEGV},
                        .time = 12.5,
                        .cause = "text \xff",
                        .last_lines = {"line"}};
  CHECK(to_json(failure_file(failure, 2)) ==
        "{\n"
        "  \"time\": 12.5,\n"
        "  \"attempt\": 2,\n"
        "  \"host\": \"h\",\n"
        "  \"node\": null,\n"
        "  \"device\": null,\n"
        "  \"rank\": 1,\n"
        "  \"local_rank\": 0,\n"
        "  \"pid\": 9,\n"
        "  \"exit_code\": 139,\n"
        "  \"signal\": \"SIGSEGV\",\n"
        "  \"cause\": \"text \xef\xbf\xbd\",\n"
        "  \"step\": null,\n"
        "  \"hang\": [],\n"
        "  \"log\": \"\",\n"
        "  \"last_lines\": [\n"
        "    \"line\"\n"
        "  ]\n"
        "}\n");
}

TEST_CASE("failure.json of a hang has its cause, and is read back unchanged") {
  const test::TemporaryFolder folder;
  CHECK_FALSE(read_failure(folder.path).has_value());
  write_failure(folder.path,
                {.host = "h",
                 .node = 1,
                 .device = "cuda:1",
                 .rank = 3,
                 .status = {.code = 75},
                 .step = 7,
                 .hang = "rank 3 never joined",
                 .hang_lines = {"silent", "spin"}},
                1);
  const FailureFile read = read_failure(folder.path).value();
  CHECK(read.attempt == 1);
  CHECK(read.node == 1);
  CHECK(read.device == "cuda:1");
  CHECK(read.rank == 3);
  CHECK(read.exit_code == 75);
  CHECK_FALSE(read.signal.has_value());
  CHECK(read.cause == "rank 3 never joined");
  CHECK(read.step == 7);
  CHECK(read.hang.size() == 2);
}

TEST_CASE("a file of another version is read as far as it goes, and a torn one is none") {
  const test::TemporaryFolder folder;
  folder.write("failure.json", R"({"rank": 2, "strange": []})");
  CHECK(read_failure(folder.path)->rank == 2);
  CHECK(read_failure(folder.path)->exit_code == 1);
  for (const std::string text : {"", "{\"rank\": ", "[]", "{\"rank\": \"x\"}"}) {
    folder.write("failure.json", text);
    CHECK_FALSE(read_failure(folder.path).has_value());
  }
}

}  // namespace
}  // namespace scaletrain::launcher
