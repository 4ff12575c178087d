#include "lib/core/disk/left_overs.h"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <unistd.h>

#include <set>
#include <string>

#include "lib/core/disk/temporary_name.h"
#include "lib/core/disk/watched_disk.h"
#include "lib/core/error.h"
#include "tests/core/zombie.h"
#include "tests/temporary_folder.h"

namespace scaletrain::core {
namespace {

namespace fs = std::filesystem;

std::set<std::string> names_of(const fs::path& folder) {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.insert(entry.path().filename());
  return names;
}

}  // namespace

TEST_CASE("what the dead and this process left is removed, what another writes is not") {
  const test::TemporaryFolder folder;
  const test::Zombie zombie;
  const std::string alive = temporary_name(".c", ::getppid());
  folder.write(fmt::format(".recipe.json.tmp.{}", zombie.pid), "{");
  folder.write(temporary_name(".b"), "");
  folder.write(alive, "");
  folder.write("metrics.jsonl", "");
  const fs::path removed = folder.path / fmt::format("step-00000004.removed.tmp.{}", zombie.pid);
  fs::create_directories(removed / "inner");
  fs::create_symlink("nowhere", folder.path / fmt::format(".best.tmp.{}", zombie.pid));
  remove_left_overs(system_disk(), folder.path);
  CHECK(names_of(folder.path) == std::set<std::string>{alive, "metrics.jsonl"});
  remove_left_overs(system_disk(), folder.path / "absent");
}

TEST_CASE("one left-over that cannot be removed is an error, and the others go") {
  const test::TemporaryFolder folder;
  for (const char* name : {"a", "b", "c"}) folder.write(temporary_name(name), "");
  int calls = 0;
  WatchedDisk disk(system_disk(), [&] {
    if (++calls == 2) throw StorageError("b", "is busy");
  });
  CHECK_THROWS_AS(remove_left_overs(disk, folder.path), StorageError);
  CHECK(names_of(folder.path) == std::set<std::string>{temporary_name("b")});
}

}  // namespace scaletrain::core
