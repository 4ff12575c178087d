#include <ATen/ATen.h>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "lib/checkpoint/checkpoint.h"
#include "lib/checkpoint/saver.h"
#include "lib/checkpoint/share.h"
#include "lib/core/disk/read_faults.h"
#include "lib/core/disk/watched_disk.h"
#include "lib/core/error.h"
#include "lib/format/checkpoint/checkpoint_folder.h"
#include "tests/checkpoint/contents_support.h"
#include "tests/checkpoint/team_support.h"
#include "tests/format/checkpoint_support.h"

namespace fs = std::filesystem;
using namespace scaletrain;              // NOLINT(google-build-using-namespace)
using namespace scaletrain::checkpoint;  // NOLINT(google-build-using-namespace)

namespace {

// A disk that fails as often as asked while files of a step are written.
class FaultyDisk : public core::WatchedDisk {
 public:
  explicit FaultyDisk(std::map<std::string, int> faults)
      : WatchedDisk(core::system_disk(), [] {}), faults_(std::move(faults)) {}

  std::unique_ptr<core::DiskFile> create(const fs::path& path, std::int64_t bytes) override {
    for (auto& [step, left] : faults_) {
      if (left == 0 || path.string().find(step) == std::string::npos) continue;
      --left;
      throw core::StorageError(path.filename().string(), "is on a broken disk", "buy another");
    }
    return WatchedDisk::create(path, bytes);
  }

 private:
  std::map<std::string, int> faults_;  // "step-00000002": so many
};

// Notes which folder was synced last.
class NotingDisk : public core::WatchedDisk {
 public:
  NotingDisk() : WatchedDisk(core::system_disk(), [] {}) {}
  void sync_folder(const fs::path& path) override {
    synced = path.filename();
    WatchedDisk::sync_folder(path);
  }
  std::string synced;
};

// Does not take the end of a save.
class DeafBoard : public test::MemoryBoard {
 public:
  void put(const std::string& key, const std::string& text) override {
    if (key == "order" && std::ranges::count(text, ' ') < 2) throw std::runtime_error("is deaf");
    MemoryBoard::put(key, text);
  }
};

FullContents contents_of(std::int64_t step) {
  FullContents contents;
  contents.model = {{"weight", at::arange(100, at::kFloat).add(static_cast<double>(step))},
                    {"bias", at::full({3}, static_cast<double>(step))}};
  contents.optimizer = {{"exp_avg/weight", at::full({100}, static_cast<double>(step))}};
  contents.state.step = step;
  contents.recipe = "{\"name\": \"test\"}";
  return contents;
}

// What each save of 1, 2, ... came to on rank 0: its step, or the error's text.
std::string saved_by(int ranks, const fs::path& run, int steps, bool beside,
                     const std::map<int, std::map<std::string, int>>& faults = {}) {
  std::string said;
  test::as_ranks(ranks, [&](Writers& own) {
    const auto found = faults.find(own.rank());
    FaultyDisk disk(found == faults.end() ? std::map<std::string, int>() : found->second);
    // The saver shares what the caller owns.
    const std::shared_ptr<Writers> writers(&own, [](Writers*) {});
    Saver saver(disk, {.run = run, .retention = {.last = 9}, .beside = beside, .writers = writers});
    for (int step = 1; step <= steps; ++step) saver.save(contents_of(step));
    saver.finish();
    for (bool is_done = false; !is_done;) {
      try {
        const std::optional<Saved> saved = saver.next();
        if (saved) said += fmt::format("{} ", saved->step);
        is_done = !saved;
      } catch (const core::Error& error) {
        said += fmt::format("({}: {}) ", error.place(), error.found());
      }
    }
  });
  return said;
}

std::string steps_in_run(const fs::path& run) {
  std::string said;
  for (const std::string& name : core::names_in(run / "checkpoints")) {
    if (name != "latest") said += name + " ";
  }
  return said;
}

}  // namespace

TEST_CASE("ranks write together beside training or not, and rank 0 has what comes of it") {
  const test::TemporaryFolder alone;
  CHECK(saved_by(1, alone.path, 3, /*beside=*/true) == "1 2 3 ");
  for (const bool beside : {true, false}) {
    const test::TemporaryFolder run;
    CHECK(saved_by(3, run.path, 3, beside) == "1 2 3 ");
    for (const std::int64_t step : {1, 2, 3}) {
      const fs::path path = format::checkpoint_path(run.path / "checkpoints", step);
      CHECK(format::check_checkpoint(path).format == 2);
      CHECK(format::model_digest(path) ==
            format::model_digest(format::checkpoint_path(alone.path / "checkpoints", step)));
    }
  }
}

TEST_CASE("a failure of any rank's disk is tried once more, then fails that save and no other") {
  for (const int rank : {0, 1, 2}) {
    CAPTURE(rank);
    const test::TemporaryFolder run;
    std::string said;
    const std::string warned = test::warnings_of([&] {
      said = saved_by(3, run.path, 4, /*beside=*/true,
                      {{rank, {{"step-00000002", 1}, {"step-00000003", 2}}}});
    });
    CHECK(said.starts_with(rank == 0 ? "1 2 (" : fmt::format("1 2 (rank {}: ", rank)));
    CHECK(said.find("is on a broken disk (the checkpoint of step 3 needs ") != std::string::npos);
    CHECK(said.ends_with(") 4 "));
    CHECK(warned.find("the checkpoint of step 2 is written once more") != std::string::npos);
    CHECK(steps_in_run(run.path) == "step-00000001 step-00000002 step-00000004 ");
    for (const std::int64_t step : {1, 2, 4}) {
      CHECK_NOTHROW(
          format::check_checkpoint(format::checkpoint_path(run.path / "checkpoints", step)));
    }
  }
}

TEST_CASE("after a failure of training nobody waits long for a rank that is gone") {
  const test::TemporaryFolder run;
  const Patience short_haste{.silent_s = 60, .absent_s = 900, .in_haste_s = 0.6};
  std::string found;
  const std::string warned = test::warnings_of([&] {
    test::as_ranks(
        3,
        [&](Writers& own) {
          if (own.rank() == 2) return;
          const std::shared_ptr<Writers> writers(&own, [](Writers*) {});
          Saver saver(core::system_disk(),
                      {.run = run.path, .retention = {.last = 9}, .writers = writers});
          saver.save(contents_of(1));
          saver.finish_after_failure();
          if (own.rank() != 0) return;
          found = test::message_of<core::StoppedError>([&] { static_cast<void>(saver.next()); });
        },
        short_haste);
  });
  CHECK(found.starts_with("rank 0: rank 2 has not responded for 1 s"));
  CHECK(core::names_in(run.path / "checkpoints").empty());
}

TEST_CASE("what another rank says that it has written has to be there") {
  struct Row {
    std::string bytes, found;  // that it writes of 5
  };
  for (const Row& row : {Row{"", "does not exist on this node, and 5 bytes were written"},
                         Row{"abc", "has 3 bytes, and 5 were written"}}) {
    const test::TemporaryFolder run;
    std::string found;
    test::as_ranks(2, [&](Writers& writers) {
      if (writers.rank() == 0) {
        const Contents contents = contents_of(1), share = share_of(contents, 0, 2);
        found = test::message_of<core::StorageError>(
            [&] { write(core::system_disk(), run.path, share, &writers); });
        return;
      }
      writers.follow([&](const std::string& folder) {
        if (!row.bytes.empty()) {
          test::write_bytes(run.path / "checkpoints" / folder / "theirs", row.bytes);
        }
        return format::FolderFiles(format::FileEntries{{"theirs", {5, "sum"}}});
      });
    });
    CHECK(found.find("theirs: " + row.found) != std::string::npos);
  }
}

TEST_CASE("the bytes of a save that was tried twice are those of one") {
  const test::TemporaryFolder run, other;
  FaultyDisk disk({{"manifest.json", 1}});
  Written twice;
  const std::string warned =
      test::warnings_of([&] { twice = write(disk, run.path, contents_of(1)); });
  CHECK(warned.find("is written once more") != std::string::npos);
  CHECK(twice.bytes == write(core::system_disk(), other.path, contents_of(1)).bytes);
}

TEST_CASE("the folder of a share is synced before its rank reports") {
  const test::TemporaryFolder run;
  std::string synced, folder;
  test::as_ranks(2, [&](Writers& writers) {
    if (writers.rank() == 1) {
      NotingDisk disk;
      write_share(disk, run.path, share_of(contents_of(1), 1, 2), writers);
      synced = disk.synced;
      return;
    }
    const Contents share = share_of(contents_of(1), 0, 2);
    write(core::system_disk(), run.path, share, &writers);
  });
  CHECK(synced.find("step-00000001") != std::string::npos);
}

TEST_CASE("a rank whose rank 0 is gone gives its share up, and says so") {
  const test::TemporaryFolder run;
  const Patience short_one{.silent_s = 0.6, .absent_s = 0.6, .in_haste_s = 0.6};
  const auto board = std::make_shared<test::MemoryBoard>();
  const std::string warned = test::warnings_of([&] {
    Saver saver(core::system_disk(),
                {.run = run.path,
                 .retention = {.last = 9},
                 .writers = std::make_shared<Writers>(board, 1, 2, short_one)});
    saver.save(contents_of(4));
    saver.finish();
  });
  CHECK(warned.find(
            "this rank's part of the checkpoint of step 4 was not written: rank 1: rank 0 ") !=
        std::string::npos);
}

TEST_CASE("a save is complete even if its end could not be announced to the other ranks") {
  const test::TemporaryFolder run;
  Writers writers(std::make_shared<DeafBoard>(), 0, 1);
  const std::string warned = test::warnings_of([&] {
    const Contents contents = contents_of(1);
    write(core::system_disk(), run.path, contents, &writers);
  });
  CHECK(warned.find("the other ranks were not informed of the end of a save: is deaf") !=
        std::string::npos);
  CHECK(steps_in_run(run.path) == "step-00000001 ");
}
