#include "lib/checkpoint/kept_files.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>

#include "lib/checkpoint/checkpoint.h"
#include "lib/checkpoint/saver.h"
#include "lib/checkpoint/share.h"
#include "lib/core/disk/read_faults.h"
#include "lib/core/disk/watched_disk.h"
#include "lib/core/error.h"
#include "lib/format/checkpoint/stored_tensors.h"
#include "lib/format/safetensors/safetensors.h"
#include "tests/checkpoint/contents_support.h"
#include "tests/checkpoint/team_support.h"
#include "tests/format/checkpoint_support.h"
#include "tests/format/crash_disk.h"

namespace fs = std::filesystem;
using namespace scaletrain;              // NOLINT(google-build-using-namespace)
using namespace scaletrain::checkpoint;  // NOLINT(google-build-using-namespace)

namespace {

constexpr std::int64_t kFrozen = 1000;  // elements of what is not trained

// A model of which "head" is trained and "body" changes where `body` does.
FullContents contents_at(std::int64_t step, double body = 0) {
  const auto value = static_cast<double>(step);
  FullContents contents;
  contents.model = {{"body.weight", at::arange(kFrozen, at::kFloat).add(body)},
                    {"body.norm", at::full({3}, 0.5, at::kDouble)},
                    {"head.weight", at::full({5, 2}, value, at::kFloat)},
                    {"none", at::empty({0, 4}, at::kFloat)}};
  contents.means["ema"].tensors = {{"body.weight", at::full({kFrozen}, 3.0, at::kFloat)},
                                   {"body.norm", at::full({3}, 0.5, at::kDouble)},
                                   {"head.weight", at::full({5, 2}, value / 2, at::kFloat)},
                                   {"none", at::empty({0, 4}, at::kFloat)}};
  contents.optimizer = {{"exp_avg/head.weight", at::full({5, 2}, value, at::kFloat)}};
  contents.state.step = step;
  contents.recipe = "{}";
  return contents;
}

// One process that saves.
struct Process {
  fs::path run;
  core::Disk& disk = core::system_disk();
  std::int64_t keep_last = 9;
  KeptFiles kept = {};

  Written save(const FullContents& contents) {
    Written written = write(disk, run, share_of(contents, 0, 1), nullptr, &kept);
    core::Housekeeping housekeeping;
    settle(disk, run, contents.state.step, {.last = keep_last}, housekeeping);
    return written;
  }
  fs::path path(std::int64_t step) const {
    return format::checkpoint_path(run / "checkpoints", step);
  }
};

void check_same(const Tensors& found, const Tensors& expected) {
  for (const auto& [name, tensor] : expected) CHECK((at::equal(tensor, found.at(name))));
}

void check_holds(const fs::path& checkpoint, const FullContents& expected) {
  CHECK_NOTHROW(format::check_checkpoint(checkpoint));
  FullContents loaded = contents_at(99, 99);
  load(checkpoint, loaded);
  Tensors mean = contents_at(98, 98).means.at("ema").tensors;
  load_weights_of(checkpoint, mean, "ema");
  CHECK(loaded.state.step == expected.state.step);
  check_same(loaded.model, expected.model);
  check_same(loaded.optimizer, expected.optimizer);
  check_same(mean, expected.means.at("ema").tensors);
}

// The files that have another name too.
std::vector<std::string> linked_files(const fs::path& checkpoint) {
  std::vector<std::string> names;
  for (const std::string& name : core::names_in(checkpoint)) {
    if (fs::hard_link_count(checkpoint / name) > 1) names.push_back(name);
  }
  return names;
}

using Names = std::vector<std::string>;
const Names kKept{"ema-00001-of-00001-kept-2.safetensors",
                  "model-00001-of-00001-kept-1.safetensors"};

// A disk without links, or with links that fail.
class NoLinks : public core::WatchedDisk {
 public:
  NoLinks() : WatchedDisk(core::system_disk(), [] {}) {}
  void link_file(const fs::path& /*file*/, const fs::path& name) override {
    throw core::StorageError(name.string(), "cannot link: Too many links (EMLINK)", "");
  }
};

// Counts the bytes that are written to files of tensors.
class CountingDisk : public core::WatchedDisk {
 public:
  CountingDisk() : WatchedDisk(core::system_disk(), [] {}) {}
  std::unique_ptr<core::DiskFile> create(const fs::path& path, std::int64_t bytes) override {
    if (path.extension() == ".safetensors") reserved += bytes;
    return WatchedDisk::create(path, bytes);
  }
  std::int64_t reserved = 0;
};

}  // namespace

TEST_CASE("what has not changed twice is linked, and each checkpoint holds all of it") {
  const test::TemporaryFolder run;
  CountingDisk disk;
  Process process{.run = run.path, .disk = disk};
  CHECK(process.save(contents_at(1)).linked == 0);
  CHECK(process.save(contents_at(2)).linked == 0);  // what is kept moves to files of its own
  const std::int64_t before = disk.reserved;
  const Written third = process.save(contents_at(3));
  const Written fourth = process.save(contents_at(4));
  CHECK(linked_files(process.path(2)) == kKept);
  CHECK(linked_files(process.path(4)) == kKept);
  CHECK(fs::hard_link_count(process.path(4) / kKept.at(0)) == 3);
  // Twice: the weight of fp32 and the norm of fp64, besides the headers of two files.
  CHECK(fourth.linked > 2 * (kFrozen * 4 + 3 * 8));
  CHECK(third.linked == fourth.linked);
  CHECK(fourth.bytes - fourth.linked < 4000);
  CHECK(disk.reserved - before < 4000);
  for (const std::int64_t step : {1, 2, 3, 4}) check_holds(process.path(step), contents_at(step));
  // A kept file notes the step of no save, the one beside it does.
  CHECK(format::StoredTensors(process.path(4) / "model.safetensors").metadata().at("step") == "4");
  CHECK(!format::SafetensorsFile(process.path(4) / kKept.at(1)).metadata().contains("step"));
  const test::TemporaryFolder alone;
  CHECK(format::model_digest(process.path(4)) ==
        format::model_digest(save(core::system_disk(), alone.path, contents_at(4), {.last = 1})));
}

TEST_CASE("a checkpoint that is removed leaves what others have of it") {
  const test::TemporaryFolder run;
  Process process{.run = run.path, .keep_last = 1};
  for (const std::int64_t step : {1, 2, 3, 4}) process.save(contents_at(step));
  CHECK(format::list_checkpoints(run.path / "checkpoints") == std::vector<std::int64_t>{4});
  CHECK(linked_files(process.path(4)).empty());  // one name is left
  check_holds(process.path(4), contents_at(4));
}

TEST_CASE("what changes again is written again, and is kept again") {
  const test::TemporaryFolder run;
  Process process{.run = run.path};
  for (const std::int64_t step : {1, 2, 3}) process.save(contents_at(step));
  process.save(contents_at(4, /*body=*/1));  // the norm beside it is as it was
  CHECK(linked_files(process.path(4)) == Names{kKept.at(0)});
  process.save(contents_at(5, 1));
  const Written last = process.save(contents_at(6, 1));
  CHECK(linked_files(process.path(6)).size() == 3);  // the norm's, the weight's and the mean's
  CHECK(last.linked > 2 * (kFrozen * 4 + 3 * 8));
  for (const std::int64_t step : {3, 4, 5, 6}) {
    check_holds(process.path(step), contents_at(step, step > 3 ? 1 : 0));
  }
}

TEST_CASE("one step may be saved twice, and one that is there may be another run's") {
  const test::TemporaryFolder run;
  Process process{.run = run.path};
  for (const std::int64_t step : {1, 2, 3}) process.save(contents_at(step));
  process.save(contents_at(3));
  check_holds(process.path(2), contents_at(2));
  check_holds(process.path(3), contents_at(3));
  process.save(contents_at(4));
  check_holds(process.path(4), contents_at(4));

  // The same names, bytes and times, with other values.
  const test::TemporaryFolder other;
  Process stranger{.run = other.path};
  for (const std::int64_t step : {1, 2, 3, 4}) stranger.save(contents_at(step, 7));
  fs::remove_all(process.path(4));
  fs::copy(stranger.path(4), process.path(4));
  const std::string warned = test::warnings_of([&] { process.save(contents_at(5)); });
  CHECK(warned.find("unchanged tensors are written again") != std::string::npos);
  check_holds(process.path(5), contents_at(5));
}

TEST_CASE("without hard links all tensors are written, with one warning") {
  const test::TemporaryFolder run;
  NoLinks disk;
  Process process{.run = run.path, .disk = disk};
  const std::string warned = test::warnings_of([&] {
    for (const std::int64_t step : {1, 2, 3, 4}) CHECK(process.save(contents_at(step)).linked == 0);
  });
  CHECK(warned.find("cannot link: Too many links (EMLINK); unchanged tensors are written again") !=
        std::string::npos);
  CHECK(std::ranges::count(warned, ';') == 2);  // of one warning
  for (const std::int64_t step : {1, 2, 3, 4}) check_holds(process.path(step), contents_at(step));
}

TEST_CASE("a save that failed is not linked to, and the next one is whole") {
  const test::TemporaryFolder run;
  Process process{.run = run.path};
  for (const std::int64_t step : {1, 2}) process.save(contents_at(step));
  FullContents diverged = contents_at(3);
  diverged.model.at("head.weight").fill_(std::numeric_limits<float>::quiet_NaN());
  CHECK_THROWS_AS(process.save(diverged), core::DivergedError);
  CHECK(process.save(contents_at(4)).linked > 0);  // to step 2
  check_holds(process.path(4), contents_at(4));
}

TEST_CASE("after a cut at any operation of an incremental save a whole checkpoint loads") {
  for (const auto lost : {test::CrashDisk::Lost::kNothing, test::CrashDisk::Lost::kContents,
                          test::CrashDisk::Lost::kEverything}) {
    bool done = false;
    int operations = 0;
    for (; !done; ++operations) {
      CAPTURE(operations);
      REQUIRE(operations < 500);
      const test::TemporaryFolder folder;
      test::CrashDisk disk(folder.path);
      disk.make_folders(folder.path / "run");
      disk.sync_folder(folder.path);
      Process process{.run = folder.path / "run", .disk = disk, .keep_last = 1};
      for (const std::int64_t step : {1, 2, 3}) process.save(contents_at(step));
      disk.cut_after(operations);
      try {
        process.save(contents_at(4));
        done = true;
      } catch (const test::PowerCut&) {
        done = false;
      }
      disk.restart(lost);
      const std::vector<std::int64_t> steps =
          format::list_checkpoints(folder.path / "run" / "checkpoints");
      REQUIRE(!steps.empty());
      CHECK(steps.back() == (done ? 4 : steps.back()));
      for (const std::int64_t step : steps) check_holds(process.path(step), contents_at(step));
    }
    CHECK(operations > 20);  // the sweep met the whole save
  }
}

TEST_CASE("ranks that write together each link what of their share has not changed") {
  const test::TemporaryFolder run, alone;
  std::vector<std::int64_t> linked;
  test::as_ranks(3, [&](Writers& own) {
    const std::shared_ptr<Writers> writers(&own, [](Writers*) {});
    Saver saver(
        core::system_disk(),
        {.run = run.path, .retention = {.last = 2}, .writers = writers, .incremental = true});
    for (const std::int64_t step : {1, 2, 3, 4}) {
      saver.save(contents_at(step));
      saver.finish();
      if (own.rank() == 0) linked.push_back(saver.next().value().linked_bytes);
    }
  });
  CHECK(linked.at(1) == 0);
  CHECK(linked.at(2) > 2 * kFrozen * 4);
  CHECK(linked.at(3) == linked.at(2));
  const fs::path path = format::checkpoint_path(run.path / "checkpoints", 4);
  CHECK(linked_files(path).size() >= 3);
  check_holds(path, contents_at(4));
  CHECK(format::model_digest(path) ==
        format::model_digest(save(core::system_disk(), alone.path, contents_at(4), {.last = 1})));
}
