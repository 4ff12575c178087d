#include "launcher/commands/slurm/array.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "lib/core/error.h"

namespace scaletrain::launcher {
namespace {

using Tasks = std::vector<int>;

std::string array_error(const std::string& text) {
  try {
    array_tasks(text);
  } catch (const core::UsageError& error) {
    return error.what();
  }
  return "no error";
}

TEST_CASE("ranges, steps and lists; how many run at once does not matter") {
  CHECK(array_tasks("3") == Tasks{3});
  CHECK(array_tasks("0-3") == Tasks{0, 1, 2, 3});
  CHECK(array_tasks("1,5-9:2%2") == Tasks{1, 5, 7, 9});
  CHECK(array_tasks("0-9999").size() == 10'000);
}

TEST_CASE("what is no array is refused") {
  CHECK(array_error("3-1") ==
        "--array: \"3-1\" has a range that runs backwards\n"
        "  it should look like 0-3 or 1,5-9:2%2, with 10,000 tasks at most");
  CHECK(array_error("1,1").find("names a task twice") != std::string::npos);
  CHECK(array_error("0-10000").find("has too many tasks") != std::string::npos);
  CHECK(array_error("0-9999,10000").find("has too many tasks") != std::string::npos);
  CHECK(array_error("5:2").find("has a step without a range") != std::string::npos);
  for (const char* text :
       {"", ",", "1,", "a", "-1", "1-", "1-2:", "1-2:0", "1%", "1%0", "5000000"}) {
    CAPTURE(text);
    CHECK(array_error(text).find("--array: ") == 0);
  }
}

TEST_CASE("%a stands for the number, every time") {
  CHECK(for_task("run-%a/%a%", 12) == "run-12/12%");
  CHECK(for_task("plain", 3) == "plain");
}

}  // namespace
}  // namespace scaletrain::launcher
