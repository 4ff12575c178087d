#include "lib/core/disk/temporary_name.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/core/process/process_start.h"
#include "tests/core/zombie.h"
#include "tests/temporary_folder.h"

namespace scaletrain::core {
namespace {

namespace fs = std::filesystem;

void set_mtime(const fs::path& path, std::int64_t time_s) {
  const timespec time{.tv_sec = time_s, .tv_nsec = 0};
  const timespec times[2] = {time, time};
  REQUIRE(::utimensat(AT_FDCWD, path.c_str(), times, AT_SYMLINK_NOFOLLOW) == 0);
}

}  // namespace

TEST_CASE("a temporary name says what it becomes and who writes it") {
  const auto own = parse_temporary(temporary_name(".latest"));
  REQUIRE(own);
  CHECK(own->name == ".latest");
  CHECK(own->writer == ::getpid());
  CHECK(own->identity.starts_with(fmt::format("{}-", start_ticks(::getpid()))));
  CHECK(parse_temporary("step-00000004.removed.tmp.18")->name == "step-00000004.removed");
  CHECK(parse_temporary("step-00000004.removed.tmp.18")->writer == 18);
  CHECK(parse_temporary("a.tmp.18-77-0123abcd")->identity == "77-0123abcd");
  for (const char* name :
       {"", "step-00000001", "a.tmp.", "a.tmp.x", "a.tmp.-1", "a.tmp.1x", "a.tmp.1-", "a.tmp.1-7",
        "a.tmp.1-7-abc", "a.tmp.1-7-0123abcg", "a.tmp.1-x-0123abcd"}) {
    CAPTURE(name);
    CHECK(!parse_temporary(name));
  }
}

TEST_CASE("a left-over's writer lives if number, start, boot and container are a process's") {
  const test::Zombie zombie;
  const std::string living = temporary_name("a", ::getppid());
  const std::string suffix = living.substr(living.find('-'));  // "-START-PLACE"
  const std::string other_place = living.substr(0, living.size() - 8) + "00000000";
  const struct {
    const char* what;
    std::string name;
    bool lives;
  } cases[] = {
      {"a process that runs", living, true},
      {"a zombie", temporary_name("a", zombie.pid), false},
      {"a zombie, as it was when it ran", fmt::format("a.tmp.{}{}", zombie.pid, suffix), false},
      {"a number that another process has now",
       fmt::format("a.tmp.{}-1-{}", ::getppid(), living.substr(living.size() - 8)), false},
      {"another boot or container", other_place, false},
      {"process 1 of another container", fmt::format("a.tmp.1-{}-00000000", start_ticks(1)), false},
      {"an earlier version's process that runs", fmt::format("a.tmp.{}", ::getppid()), true},
      {"an earlier version's zombie", fmt::format("a.tmp.{}", zombie.pid), false},
      {"an earlier version's process 1", "a.tmp.1", false},
  };
  const test::TemporaryFolder folder;
  for (const auto& one : cases) {
    CAPTURE(one.what);
    folder.write(one.name, "");
    CHECK(has_living_writer(folder.path / one.name, *parse_temporary(one.name)) == one.lives);
  }
  // A process that began after the last change has not made it.
  const std::string old = fmt::format("a.tmp.{}", ::getppid());
  set_mtime(folder.path / old, static_cast<std::int64_t>(start_time(::getppid())) - 60);
  CHECK(!has_living_writer(folder.path / old, *parse_temporary(old)));
}

}  // namespace scaletrain::core
