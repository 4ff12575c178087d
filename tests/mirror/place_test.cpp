#include "lib/mirror/place.h"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "lib/core/error.h"
#include "lib/core/log.h"
#include "tests/format/checkpoint_support.h"
#include "tests/format/crash_disk.h"
#include "tests/format/cut_support.h"

namespace scaletrain::mirror {
namespace {

namespace fs = std::filesystem;

const std::function<void()> kNobody = [] {};

std::string steps_at(const fs::path& place) {
  return fmt::format("{}", fmt::join(format::list_checkpoints(place / "checkpoints"), " "));
}

std::int64_t put(Place& place, const fs::path& checkpoint) {
  return place.put(OpenCheckpoint(checkpoint), kNobody);
}

}  // namespace

TEST_CASE("a folder gets whole checkpoints, each once, and a changed one again") {
  const test::TemporaryFolder folder;
  const fs::path run = folder.path / "run", copies = folder.path / "far/copies";
  const auto place =
      make_place(copies.string(), core::system_disk(), {}, std::make_shared<core::Housekeeping>());
  const fs::path first = test::publish_sensible(run, 1);
  int moves = 0;
  CHECK(place->put(OpenCheckpoint(first), [&] { ++moves; }) == OpenCheckpoint(first).bytes());
  CHECK(moves > 10);
  const fs::path copy = copies / "checkpoints/step-00000001";
  CHECK(format::check_checkpoint(copy).step == 1);
  CHECK((test::read_bytes(copy / "manifest.json") == test::read_bytes(first / "manifest.json")));
  CHECK(put(*place, first) == 0);
  test::Sensible changed(1);
  changed.state.validation_due = true;
  test::publish(run, changed, 1);
  CHECK(put(*place, first) > 0);
  CHECK(format::read_state(copy).validation_due);
  // What is not the size that it was is copied again.
  test::write_bytes(copy / "state.json", "{}");
  CHECK(put(*place, first) > 0);
  CHECK_NOTHROW(format::check_checkpoint(copy));
}

TEST_CASE("a checkpoint in pieces is copied with the table of its pieces") {
  const test::TemporaryFolder folder;
  const fs::path run = folder.path / "run", copies = folder.path / "copies";
  const auto place = make_folder_place(copies.string(), core::system_disk());
  const fs::path checkpoint = test::publish_cut(run, test::Sensible(1), 1);
  CHECK(put(*place, checkpoint) > 0);
  const fs::path copy = copies / "checkpoints/step-00000001";
  CHECK_NOTHROW(format::check_checkpoint(copy));
  CHECK(format::model_digest(copy) == format::model_digest(checkpoint));
  CHECK(put(*place, checkpoint) == 0);
}

TEST_CASE("a folder keeps what the run keeps") {
  const test::TemporaryFolder folder;
  const fs::path run = folder.path / "run", copies = folder.path / "copies";
  const auto place = make_folder_place(copies.string(), core::system_disk());
  for (const int step : {1, 2, 3, 4}) {
    put(*place, test::publish_sensible(run, step));
    place->retain(step, {.last = 2, .every_steps = 3});
  }
  CHECK(steps_at(copies) == "1 3 4");
  CHECK(fs::read_symlink(copies / "checkpoints/latest") == "step-00000004");
}

TEST_CASE("a damaged checkpoint is not copied") {
  const test::TemporaryFolder folder;
  const fs::path path = test::publish_sensible(folder.path / "run", 1);
  std::string classes = test::read_bytes(path / "classes.json");
  classes.front() = '{';
  test::write_bytes(path / "classes.json", classes);
  const auto place = make_folder_place(folder.file("copies"), core::system_disk());
  CHECK(test::message_of<core::CheckpointError>([&] {
          put(*place, path);
        }).starts_with((path / "classes.json").string() + ": has the XXH3-128 "));
  CHECK(steps_at(folder.path / "copies").empty());
}

TEST_CASE("a folder's disk that fails is an error, and the copies from before stay whole") {
  for (const char* const operation : {"create", "write", "sync", "rename", "sync_folder"}) {
    CAPTURE(operation);
    const test::TemporaryFolder folder;
    test::CrashDisk disk(folder.path);
    const auto place = make_folder_place(folder.file("copies"), disk);
    const test::TemporaryFolder run;
    put(*place, test::publish_sensible(run.path, 1));
    disk.before = [&](const std::string& at, const fs::path& path) {
      if (at == operation) throw core::StorageError(path.string(), "ENOSPC, as the test says");
    };
    const fs::path second = test::publish_sensible(run.path, 2);
    test::warnings_of([&] { CHECK_THROWS_AS(put(*place, second), core::StorageError); });
    disk.before = nullptr;
    CHECK_NOTHROW(format::check_checkpoint(folder.path / "copies/checkpoints/step-00000001"));
    CHECK(put(*place, second) >= 0);
    place->retain(2, {.last = 2});
    CHECK(steps_at(folder.path / "copies") == "1 2");
    CHECK_NOTHROW(format::check_checkpoint(folder.path / "copies/checkpoints/step-00000002"));
  }
}

TEST_CASE("a disk without room for a copy is an error before anything is written") {
  const test::TemporaryFolder folder, run;
  test::CrashDisk disk(folder.path);
  disk.free = 100;
  const auto place = make_folder_place(folder.file("copies"), disk);
  CHECK(test::message_of<core::StorageError>([&] {
          put(*place, test::publish_sensible(run.path, 1));
        }).find("100 are free") != std::string::npos);
}

TEST_CASE("after a cut at any moment a folder has a whole copy: the one before or the new one") {
  const test::TemporaryFolder run;
  const fs::path first = test::publish_sensible(run.path, 1);
  const fs::path second = test::publish_sensible(run.path, 2);
  using Lost = test::CrashDisk::Lost;
  for (const Lost lost : {Lost::kNothing, Lost::kContents, Lost::kEverything}) {
    bool is_whole = false;
    for (int cut = 0; !is_whole; ++cut) {
      const test::TemporaryFolder folder;
      test::CrashDisk disk(folder.path);
      const auto place = make_folder_place(folder.file("copies"), disk);
      put(*place, first);
      disk.cut_after(cut);
      try {
        put(*place, second);
        place->retain(2, {.last = 1});
        is_whole = true;
      } catch (const test::PowerCut&) {
      }
      disk.restart(lost);
      const auto found = format::find_checkpoint(folder.path / "copies",
                                                 [](const std::string& text) { FAIL_CHECK(text); });
      CHECK(found.has_value());
    }
  }
}

TEST_CASE("the checkpoints of a place lie below it") {
  CHECK(checkpoints_of("s3://b/run") == "s3://b/run/checkpoints");
}

}  // namespace scaletrain::mirror
