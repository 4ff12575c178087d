#include "lib/format/checkpoint/checkpoint_folder_remove.h"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include "lib/core/disk/read_faults.h"
#include "lib/core/disk/temporary_name.h"
#include "lib/format/checkpoint/checkpoint_folder.h"
#include "lib/format/checkpoint/checkpoint_folder_names.h"
#include "tests/format/checkpoint_support.h"
#include "tests/format/crash_disk.h"
#include "tests/temporary_folder.h"

namespace fs = std::filesystem;
using namespace scaletrain;          // NOLINT(google-build-using-namespace)
using namespace scaletrain::format;  // NOLINT(google-build-using-namespace)

namespace {

using Steps = std::vector<std::int64_t>;

void publish_step(const fs::path& checkpoints, std::int64_t step,
                  core::Disk& disk = core::system_disk()) {
  publish_checkpoint(
      disk, checkpoints, {.program = "test", .step = step}, 1, [&](const fs::path& folder) {
        return FileEntries{
            {"a", write_hashed(disk, folder / "a", "a")},
            {"state.json", write_hashed(disk, folder / "state.json", test::state_text(step))}};
      });
}

Steps retain_by(core::Disk& disk, const fs::path& checkpoints, std::int64_t newest,
                std::int64_t keep_last, core::Housekeeping& housekeeping) {
  return retain_checkpoints(disk, checkpoints, survey_checkpoints(checkpoints), newest,
                            {.last = keep_last}, housekeeping);
}

void retain(const fs::path& checkpoints, std::int64_t newest, std::int64_t keep_last) {
  core::Housekeeping housekeeping;
  retain_by(core::system_disk(), checkpoints, newest, keep_last, housekeeping);
}

std::vector<std::int64_t> retained(const std::vector<std::int64_t>& steps, std::int64_t newest,
                                   std::int64_t keep_last) {
  const test::TemporaryFolder run;
  for (const std::int64_t step : steps) publish_step(run.path, step);
  retain(run.path, newest, keep_last);
  return list_checkpoints(run.path);
}

}  // namespace

TEST_CASE("what kept_checkpoints() leaves out goes") {
  CHECK(retained({1, 2, 3, 4, 5}, 5, 2) == Steps{4, 5});
  CHECK(retained({1, 2, 3}, 3, 9) == Steps{1, 2, 3});
  CHECK(retained({10, 20, 30, 40}, 20, 5) == Steps{10, 20});
}

TEST_CASE("what could not be read stays, whichever step it is of") {
  const test::TemporaryFolder run;
  for (const std::int64_t step : {1, 2, 3, 4, 5, 6}) publish_step(run.path, step);
  const auto state_of = [&](std::int64_t step) {
    return run.path / checkpoint_name(step) / "state.json";
  };
  fs::remove(state_of(2));
  fs::create_symlink("state.json", state_of(2));  // as of a disk that fails: it cannot be opened
  test::write_bytes(state_of(3), "{");
  fs::remove(state_of(6));
  retain(run.path, 5, 1);
  CHECK(list_checkpoints(run.path) == Steps{2, 3, 5, 6});
}

TEST_CASE("a folder that cannot be listed or read back loses no checkpoint") {
  const test::TemporaryFolder run;
  const fs::path folder = run.path / "checkpoints", kept = run.path / "kept";
  for (const std::int64_t step : {1, 2, 3}) publish_step(folder, step);
  const Survey survey = survey_checkpoints(folder);
  fs::rename(folder, kept);
  fs::create_symlink("checkpoints", folder);  // to itself: as of a disk that fails
  core::Housekeeping housekeeping;
  const std::string warnings = test::warnings_of([&] {
    retain_checkpoints(core::system_disk(), folder, survey, 3, {.last = 1}, housekeeping);
  });
  CHECK(warnings.find("(ELOOP); it is kept, and removed later if possible; ") != std::string::npos);
  CHECK(warnings.find("(ELOOP); no earlier checkpoint is removed; ") != std::string::npos);
  fs::remove(folder);
  fs::rename(kept, folder);
  CHECK(list_checkpoints(folder) == Steps{1, 2, 3});
}

TEST_CASE("what dead processes and this one left is removed, what another writes is not") {
  const test::TemporaryFolder run;
  publish_step(run.path, 1);
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  REQUIRE(::waitpid(child, nullptr, 0) == child);
  const std::string dead = fmt::format("step-00000002.tmp.{}", child);
  const std::string own = core::temporary_name("step-00000003");
  const std::string alive = core::temporary_name("step-00000004", ::getppid());
  for (const std::string& name : {dead, own, alive}) fs::create_directory(run.path / name);
  fs::create_symlink("step-00000001", run.path / fmt::format(".latest.tmp.{}", child));
  retain(run.path, 1, 1);
  CHECK(core::names_in(run.path) == std::vector<std::string>{"step-00000001", alive});
}

TEST_CASE("where no checkpoint goes the newest is not read back") {
  const test::TemporaryFolder run;
  publish_step(run.path, 1);
  publish_step(run.path, 2);
  test::write_bytes(run.path / "step-00000002" / "a", "b");
  CHECK_NOTHROW(retain(run.path, 2, 2));
}

TEST_CASE("a checkpoint goes that a killed save has set aside without a successor") {
  const test::TemporaryFolder run;
  for (const std::int64_t step : {1, 2}) publish_step(run.path, step);
  fs::rename(run.path / "step-00000001", run.path / "step-00000001.old");
  retain(run.path, 2, 1);
  CHECK(core::names_in(run.path) == std::vector<std::string>{"step-00000002"});
}

TEST_CASE("nothing is removed when a file of the newest has another size") {
  const test::TemporaryFolder run;
  publish_step(run.path, 1);
  publish_step(run.path, 2);
  test::write_bytes(run.path / "step-00000002" / "a", "");
  const std::string message = test::message_of<core::StorageError>([&] { retain(run.path, 2, 1); });
  CHECK(message ==
        (run.path / "step-00000002" / "a").string() +
            ": has 0 bytes, its manifest says 1\n  the disk lost data that was just written, so no "
            "earlier checkpoint was removed: check the disk, or choose another /output");
  CHECK(list_checkpoints(run.path) == Steps{1, 2});
}

TEST_CASE("an operation of the disk that fails once is tried again, for good it is a warning") {
  for (const bool for_good : {false, true}) {
    // Nothing of an old checkpoint goes; the name goes and the files stay.
    for (const char* const operation : {"rename", "remove"}) {
      CAPTURE(for_good);
      CAPTURE(operation);
      const test::TemporaryFolder folder;
      const fs::path run = folder.path / "checkpoints";
      test::CrashDisk disk(folder.path);
      for (const std::int64_t step : {1, 2, 3}) publish_step(run, step, disk);
      int calls = 0;
      bool is_busy = true;
      disk.before = [&](const std::string& at, const fs::path& path) {
        if (!is_busy || at != operation || (++calls > 1 && !for_good)) return;
        throw core::StorageError(path.string(), "cannot " + at + ": EBUSY");
      };
      core::Housekeeping housekeeping;
      const std::string warnings =
          test::warnings_of([&] { retain_by(disk, run, 3, 1, housekeeping); });
      CHECK(housekeeping.failures() == (for_good ? 2 : 0));
      const bool says_so =
          warnings.find("EBUSY; it is kept, and removed later if possible") != std::string::npos;
      CHECK(says_so == for_good);
      CHECK(std::ranges::count(warnings, ';') == (for_good ? 2 : 0));  // for one cause, once
      CHECK_NOTHROW(verify_checkpoint(run / "step-00000003"));

      is_busy = false;
      test::warnings_of([&] { retain_by(disk, run, 3, 1, housekeeping); });
      CHECK(core::names_in(run) == std::vector<std::string>{"step-00000003"});
    }
  }
}
