#include "lib/core/left_overs.h"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <set>

#include "tests/temporary_folder.h"

namespace scaletrain::core {
namespace {

TEST_CASE("a temporary name tells its process") {
  CHECK(pid_of_temporary(".latest.tmp.17") == 17);
  CHECK(pid_of_temporary("step-00000004.removed.tmp.18") == 18);
  for (const char* name : {"", "step-00000001", "a.tmp.", "a.tmp.x", "a.tmp.-1", "a.tmp.1x"}) {
    CAPTURE(name);
    CHECK(pid_of_temporary(name) == std::nullopt);
  }
}

TEST_CASE("what the dead and this process left is removed, what another writes is not") {
  const test::TemporaryFolder folder;
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  REQUIRE(::waitpid(child, nullptr, 0) == child);
  const std::string alive = fmt::format(".c.tmp.{}", ::getppid());
  folder.write(fmt::format(".recipe.json.tmp.{}", child), "{");
  folder.write(fmt::format(".b.tmp.{}", ::getpid()), "");
  folder.write(alive, "");
  folder.write("metrics.jsonl", "");
  const std::filesystem::path removed =
      folder.path / fmt::format("step-00000004.removed.tmp.{}", child);
  std::filesystem::create_directories(removed / "inner");
  std::filesystem::create_symlink("nowhere", folder.path / fmt::format(".best.tmp.{}", child));
  remove_left_overs(system_disk(), folder.path);
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path)) {
    names.insert(entry.path().filename());
  }
  CHECK(names == std::set<std::string>{alive, "metrics.jsonl"});
  remove_left_overs(system_disk(), folder.path / "absent");
}

}  // namespace
}  // namespace scaletrain::core
