#include "lib/format/checkpoint/checkpoint_folder_links.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <string>
#include <utility>

#include "lib/core/disk/name_link.h"
#include "lib/core/disk/read_faults.h"
#include "lib/core/disk/watched_disk.h"
#include "lib/format/checkpoint/checkpoint_folder.h"
#include "tests/format/checkpoint_support.h"
#include "tests/format/crash_disk.h"
#include "tests/temporary_folder.h"

namespace fs = std::filesystem;
using namespace scaletrain;          // NOLINT(google-build-using-namespace)
using namespace scaletrain::format;  // NOLINT(google-build-using-namespace)

namespace {

// A checkpoint of `step` whose best is that of `best_step`, -1: none.
fs::path publish_with_best(const fs::path& run, std::int64_t step, std::int64_t best_step) {
  test::Sensible contents(step);
  contents.state.best_step = best_step;
  if (best_step >= 0) {
    contents.state.best_metric = 0.5;
    contents.state.best_steps = {{best_step, 0.5}};
  }
  return test::publish(run, contents, step);
}

// Where the links point: "latest best".
std::string links_of(const fs::path& checkpoints) {
  return core::read_name_link(checkpoints / "latest") + " " +
         core::read_name_link(checkpoints / "best");
}

// A disk that refuses operations of one kind on links, the first `times`.
class PickyDisk : public core::WatchedDisk {
 public:
  PickyDisk(std::string kind, int times)
      : WatchedDisk(core::system_disk(), [] {}), kind_(std::move(kind)), left_(times) {}

  void make_link(const fs::path& target, const fs::path& link) override {
    refuse("make_link", link);
    WatchedDisk::make_link(target, link);
  }
  void rename(const fs::path& from, const fs::path& to) override {
    refuse("rename", to);
    WatchedDisk::rename(from, to);
  }

 private:
  void refuse(const std::string& at, const fs::path& path) {
    if (at == kind_ && left_-- > 0) throw core::StorageError(path.string(), at + ": EOPNOTSUPP");
  }

  std::string kind_;
  int left_;
};

}  // namespace

TEST_CASE("links that a killed save left behind are put right by what the checkpoints say") {
  const test::TemporaryFolder run;
  const fs::path checkpoints = run.path / "checkpoints";
  publish_with_best(run.path, 10, 10);
  publish_with_best(run.path, 20, 20);
  publish_with_best(run.path, 30, 20);
  const std::string right = "step-00000030 step-00000020";
  settle_links(core::system_disk(), checkpoints);  // the first save was killed: there are none
  CHECK(links_of(checkpoints) == right);
  core::replace_link(core::system_disk(), "step-00000010", checkpoints / "latest");
  core::replace_link(core::system_disk(), "step-00000010", checkpoints / "best");
  settle_links(core::system_disk(), checkpoints);
  CHECK(links_of(checkpoints) == right);

  test::CrashDisk idle(run.path);
  int operations = 0;
  idle.before = [&](const std::string&, const fs::path&) { ++operations; };
  settle_links(idle, checkpoints);
  CHECK(operations == 0);
}

TEST_CASE("best goes where there is none, and stays where that cannot be known") {
  const test::TemporaryFolder run;
  const fs::path checkpoints = run.path / "checkpoints";
  const fs::path first = publish_with_best(run.path, 10, 10);
  publish_with_best(run.path, 20, -1);
  core::replace_link(core::system_disk(), "step-00000010", checkpoints / "best");
  fs::rename(first / "state.json", first / "state");
  settle_links(core::system_disk(), checkpoints);
  CHECK(links_of(checkpoints) == "step-00000020 step-00000010");
  fs::remove_all(first);
  settle_links(core::system_disk(), checkpoints);
  CHECK(links_of(checkpoints) == "step-00000020 ");
}

TEST_CASE("a folder without checkpoints gets no links") {
  const test::TemporaryFolder run;
  settle_links(core::system_disk(), run.path / "checkpoints");
  CHECK(!fs::exists(run.path / "checkpoints"));
}

TEST_CASE("links stay where the checkpoints cannot be listed, with a warning") {
  const test::TemporaryFolder run;
  fs::create_symlink("checkpoints", run.path / "checkpoints");  // as of a disk that fails
  const fs::path checkpoints = run.path / "checkpoints";
  CHECK(test::warnings_of([&] { settle_links(core::system_disk(), checkpoints); }) ==
        fmt::format("warning: {}: cannot be read: Too many levels of symbolic links (ELOOP); "
                    "latest and best may name older checkpoints; ",
                    checkpoints.string()));
}

TEST_CASE("latest and best mean what the checkpoints say, wherever the links point") {
  const test::TemporaryFolder run;
  const fs::path checkpoints = run.path / "checkpoints";
  const fs::path first = publish_with_best(run.path, 10, -1);
  const fs::path best = publish_with_best(run.path, 20, 20);
  const fs::path newest = publish_with_best(run.path, 30, 20);
  for (const bool linked : {false, true}) {
    CAPTURE(linked);
    if (linked) {
      fs::create_symlink("step-00000010", checkpoints / "latest");
      fs::create_symlink("step-00000010", checkpoints / "best");
    }
    CHECK(checkpoints_at(checkpoints / "latest").folders == std::vector{newest});
    CHECK(checkpoints_at(checkpoints / "best").folders == std::vector{best});
  }
  // Elsewhere a link of that name is a person's own.
  fs::create_symlink(first, run.path / "best");
  CHECK(checkpoints_at(run.path / "best").folders == std::vector{first});
}

TEST_CASE("without symbolic links latest and best are files, which mean the same") {
  const test::TemporaryFolder run;
  const fs::path checkpoints = run.path / "checkpoints";
  publish_with_best(run.path, 10, 10);
  const fs::path newest = publish_with_best(run.path, 20, 10);
  PickyDisk disk("make_link", 99);
  const std::string warnings = test::warnings_of([&] { settle_links(disk, checkpoints); });
  CHECK(warnings ==
        fmt::format("warning: {}/latest: make_link: EOPNOTSUPP; without symbolic links, latest and "
                    "best are files that hold the name; ",
                    checkpoints.string()));
  CHECK(links_of(checkpoints) == "step-00000020 step-00000010");
  CHECK(!fs::is_symlink(checkpoints / "latest"));
  CHECK(checkpoints_at(checkpoints / "latest").folders == std::vector{newest});
  fs::rename(checkpoints / "latest", run.path / "latest");
  fs::rename(newest, run.path / "step-00000020");
  CHECK(checkpoints_at(run.path / "latest").folders == std::vector{run.path / "step-00000020"});
}

TEST_CASE(
    "one operation beside the checkpoint that fails is tried again; for good it is a warning") {
  for (const char* const kind : {"make_link", "rename"}) {
    for (const int times : {1, 99}) {
      CAPTURE(kind);
      CAPTURE(times);
      const test::TemporaryFolder run;
      const fs::path checkpoints = run.path / "checkpoints";
      publish_with_best(run.path, 10, 10);
      PickyDisk disk(kind, times);
      const std::string warnings = test::warnings_of([&] { settle_links(disk, checkpoints); });
      const bool is_behind = std::string(kind) == "rename" && times > 1;
      CHECK(links_of(checkpoints) == (is_behind ? " " : "step-00000010 step-00000010"));
      const bool says_so =
          warnings.find("latest and best may name older checkpoints") != std::string::npos;
      CHECK(says_so == is_behind);
      CHECK(core::names_in(checkpoints).size() == (is_behind ? 1 : 3));
    }
  }
}

// As of cp -rL, or of a copy through an object store.
TEST_CASE("links that were copied as folders become links again, what is no copy stays") {
  const test::TemporaryFolder run;
  const fs::path checkpoints = run.path / "checkpoints";
  const fs::path first = publish_with_best(run.path, 10, 10);
  fs::copy(first, checkpoints / "latest", fs::copy_options::recursive);
  fs::copy(first, checkpoints / "best", fs::copy_options::recursive);
  publish_with_best(run.path, 20, 10);
  settle_links(core::system_disk(), checkpoints);
  CHECK(links_of(checkpoints) == "step-00000020 step-00000010");
  CHECK(core::names_in(checkpoints) ==
        std::vector<std::string>{"best", "latest", "step-00000010", "step-00000020"});

  fs::remove(checkpoints / "latest");
  fs::create_directory(checkpoints / "latest");
  test::write_bytes(checkpoints / "latest" / "mine", "");
  const std::string warnings =
      test::warnings_of([&] { settle_links(core::system_disk(), checkpoints); });
  CHECK(warnings.find("latest and best may name older checkpoints") != std::string::npos);
  CHECK(fs::exists(checkpoints / "latest" / "mine"));
}
