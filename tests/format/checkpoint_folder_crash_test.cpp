// The promise of publish_checkpoint and retain_checkpoints, tried by a cut after every single
// operation.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "lib/core/disk/read_faults.h"
#include "lib/format/checkpoint/checkpoint_folder.h"
#include "lib/format/checkpoint/checkpoint_folder_names.h"
#include "lib/format/checkpoint/checkpoint_folder_remove.h"
#include "tests/format/checkpoint_support.h"
#include "tests/format/crash_disk.h"
#include "tests/temporary_folder.h"

namespace fs = std::filesystem;
using namespace scaletrain;          // NOLINT(google-build-using-namespace)
using namespace scaletrain::format;  // NOLINT(google-build-using-namespace)
using test::CrashDisk;

namespace {

// `text` tells two checkpoints of one step apart.
void publish(core::Disk& disk, const fs::path& run, std::int64_t step, const std::string& text) {
  publish_checkpoint(disk, run / "checkpoints", {.program = "test", .step = step}, 100,
                     [&](const fs::path& folder) {
                       return FileEntries{{"a", write_hashed(disk, folder / "a", "a of " + text)},
                                          {"state.json", write_hashed(disk, folder / "state.json",
                                                                      test::state_text(step))}};
                     });
}

// One save as lib/checkpoint does it.
void save(core::Disk& disk, const fs::path& run, std::int64_t step, const std::string& text,
          std::int64_t keep_last) {
  const fs::path checkpoints = run / "checkpoints";
  publish(disk, run, step, text);
  core::replace_link(disk, checkpoint_name(step), checkpoints / "latest");
  core::Housekeeping housekeeping;
  retain_checkpoints(disk, checkpoints, survey_checkpoints(checkpoints), step, {.last = keep_last},
                     housekeeping);
}

std::string text_of(const fs::path& checkpoint) {
  return test::read_bytes(checkpoint / "a").substr(std::string("a of ").size());
}

std::optional<fs::path> newest_of(const fs::path& run) {
  const std::vector<fs::path> folders = checkpoints_at(run).folders;
  return folders.empty() ? std::nullopt : std::optional(folders.front());
}

// "step-N.old" is one only where step N has another folder.
std::vector<std::string> left_overs(const fs::path& checkpoints) {
  std::vector<std::string> found;
  for (const std::string& name : core::names_in(checkpoints)) {
    const auto step = step_of_name(name);
    const bool used =
        step ? checkpoint_path(checkpoints, *step) == checkpoints / name : name == "latest";
    if (!used) found.push_back(name);
  }
  return found;
}

struct Sweep {
  int earlier;             // checkpoints before, of the steps 10, 20, ...
  std::int64_t next_step;  // what is being saved at the cut
  std::int64_t keep_last;
  CrashDisk::Lost lost;
};

// True when the save was over before the cut.
bool cut_once(const Sweep& sweep, int operations) {
  const test::TemporaryFolder folder;
  const fs::path run = folder.path / "run";
  CrashDisk disk(folder.path);
  disk.make_folders(run);
  disk.sync_folder(folder.path);
  std::string before;
  for (int number = 1; number <= sweep.earlier; ++number) {
    before = fmt::format("first {}", number * 10);
    save(disk, run, number * 10, before, sweep.keep_last);
  }
  bool done = false;
  disk.cut_after(operations);
  try {
    save(disk, run, sweep.next_step, "new", sweep.keep_last);
    done = true;
  } catch (const test::PowerCut&) {
    done = false;
  }
  disk.restart(sweep.lost);

  const auto found = newest_of(run);
  if (sweep.earlier > 0) REQUIRE(found.has_value());
  // Not only the newest: no half of a checkpoint is ever seen under its name.
  for (const std::int64_t step : list_checkpoints(run / "checkpoints")) {
    CHECK_NOTHROW(verify_checkpoint(checkpoint_path(run / "checkpoints", step)));
  }
  const std::string text = found ? text_of(*found) : "";
  if (done) {
    CHECK(text == "new");
  } else {
    CHECK((text == "new" || text == before));
  }

  // The next save works whatever was left behind, and cleans up.
  save(disk, run, 1000, "after", sweep.keep_last);
  CHECK(text_of(*newest_of(run)) == "after");
  CHECK(fs::read_symlink(run / "checkpoints" / "latest") == "step-00001000");
  const std::vector<std::string> left = left_overs(run / "checkpoints");
  CHECK_MESSAGE(left.empty(), (left.empty() ? "" : left.front()));
  return done;
}

void sweep_all(int earlier, std::int64_t next_step, std::int64_t keep_last) {
  for (const auto lost :
       {CrashDisk::Lost::kNothing, CrashDisk::Lost::kContents, CrashDisk::Lost::kEverything}) {
    const Sweep sweep{earlier, next_step, keep_last, lost};
    int operations = 0;
    for (bool done = false; !done; ++operations) {
      CAPTURE(operations);
      CAPTURE(static_cast<int>(lost));
      done = cut_once(sweep, operations);
      REQUIRE(operations < 200);
    }
    CHECK(operations > 15);  // the sweep met the whole save
  }
}

}  // namespace

TEST_CASE("after any cut the previous checkpoint or the new one is found") {
  for (int earlier = 0; earlier <= 3; ++earlier) {
    CAPTURE(earlier);
    sweep_all(earlier, 100, 3);
  }
}

TEST_CASE("after any cut while old checkpoints are removed one is found") {
  for (int earlier = 1; earlier <= 3; ++earlier) {
    CAPTURE(earlier);
    sweep_all(earlier, 100, 1);
  }
}

TEST_CASE("after any cut while a checkpoint of the same step is replaced one of both is found") {
  for (int earlier = 1; earlier <= 3; ++earlier) {
    CAPTURE(earlier);
    sweep_all(earlier, earlier * 10, 3);
  }
}

TEST_CASE("a checkpoint survives a power cut from the moment publish_checkpoint returns") {
  const test::TemporaryFolder folder;
  const fs::path run = folder.path / "run";
  CrashDisk disk(folder.path);
  disk.make_folders(run);
  disk.sync_folder(folder.path);
  publish(disk, run, 1, "first");
  disk.restart(CrashDisk::Lost::kEverything);
  const auto found = newest_of(run);
  REQUIRE(found.has_value());
  CHECK(text_of(*found) == "first");
}
