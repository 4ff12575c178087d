#include "lib/checkpoint/saver.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <thread>

#include "lib/core/clock.h"
#include "lib/core/error.h"
#include "lib/format/checkpoint/checkpoint_folder.h"
#include "lib/format/safetensors/safetensors.h"
#include "tests/checkpoint/contents_support.h"
#include "tests/temporary_folder.h"

using namespace scaletrain;              // NOLINT(google-build-using-namespace)
using namespace scaletrain::checkpoint;  // NOLINT(google-build-using-namespace)

namespace {

using Steps = std::vector<std::int64_t>;

FullContents contents_at(std::int64_t step, const at::Tensor& weight) {
  FullContents contents;
  contents.model = {{"weight", weight}};
  contents.state.step = step;
  contents.recipe = "{}";
  contents.stands = true;
  return contents;
}

float weight_in(const std::filesystem::path& checkpoint) {
  const format::SafetensorsFile file(checkpoint / "model.safetensors");
  float value = 0;
  file.read(file.tensors().at(0), std::as_writable_bytes(std::span(&value, 1)));
  return value;
}

// Of all files but the manifest.
std::int64_t bytes_in(const std::filesystem::path& checkpoint) {
  std::uintmax_t bytes = 0;
  for (const auto& entry : std::filesystem::directory_iterator(checkpoint)) {
    if (entry.path().filename() != "manifest.json") bytes += entry.file_size();
  }
  return static_cast<std::int64_t>(bytes);
}

// A disk that stands still until open() is called.
class Gate {
 public:
  void pass() {
    std::unique_lock lock(mutex_);
    opened_.wait(lock, [this] { return is_open_; });
  }
  void open() {
    const std::lock_guard lock(mutex_);
    is_open_ = true;
    opened_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable opened_;
  bool is_open_ = false;
};

}  // namespace

TEST_CASE("training goes on while a checkpoint of what stood is written") {
  const core::SteadyTime start = core::now();
  const test::TemporaryFolder run;
  Gate gate;
  core::WatchedDisk disk(core::system_disk(), [&gate] { gate.pass(); });
  Saver saver(disk, {.run = run.path, .retention = {.last = 9}});
  const at::Tensor weight = at::full({1}, 1.0);
  saver.save(contents_at(1, weight));
  saver.await_copies();
  weight.fill_(2);
  saver.save(contents_at(2, weight));  // the thread that writes is at the first
  saver.await_copies();
  weight.fill_(3);
  CHECK(!saver.next());
  CHECK(format::list_checkpoints(run.path / "checkpoints").empty());

  // Two copies are in memory: the next waits for the first of them.
  std::atomic<bool> is_begun = false;
  std::thread third([&] {
    saver.save(contents_at(3, weight));
    is_begun = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  CHECK(!is_begun);
  CHECK(saver.stands_still_s() > 0.04);
  gate.open();
  third.join();
  saver.finish();
  CHECK(saver.stands_still_s() == 0);
  for (const std::int64_t step : {1, 2, 3}) {
    const std::optional<Saved> saved = saver.next();
    REQUIRE(saved);
    CHECK(saved->step == step);
    CHECK(saved->path == format::checkpoint_path(run.path / "checkpoints", step));
    CHECK(saved->bytes == bytes_in(saved->path));
    CHECK(saved->write_s > 0);
    CHECK(saved->write_s <= core::seconds_since(start));
    CHECK(saved->stall_s > 0);
    CHECK(weight_in(saved->path) == static_cast<float>(step));
  }
  CHECK(!saver.next());
}

TEST_CASE("what a save is given is copied before the next, or where nobody waits for that") {
  const test::TemporaryFolder run;
  Gate gate;
  core::WatchedDisk disk(core::system_disk(), [&gate] { gate.pass(); });
  {
    Saver saver(disk, {.run = run.path, .retention = {.last = 9}});
    saver.await_copies();  // of nothing
    saver.save(contents_at(1, at::full({1}, 1.0)));
    saver.save(contents_at(2, at::full({1}, 2.0)));
    gate.open();
    saver.save(contents_at(3, at::full({1}, 3.0)));
  }
  for (const std::int64_t step : {1, 2, 3}) {
    const auto path = format::checkpoint_path(run.path / "checkpoints", step);
    CHECK(weight_in(path) == static_cast<float>(step));
  }
}

TEST_CASE("the wait for a copy is part of what a save costs training") {
  const test::TemporaryFolder run;
  Gate gate;
  core::WatchedDisk disk(core::system_disk(), [&gate] { gate.pass(); });
  Saver saver(disk, {.run = run.path, .retention = {.last = 9}});
  saver.save(contents_at(1, at::ones({1})));
  const FullContents contents = contents_at(2, at::ones({16 << 20}));
  const auto before = std::chrono::seconds(1);
  saver.save(contents, core::now() - before);
  const core::SteadyTime since = core::now();
  saver.await_copies();  // which alone copies
  const double waited = core::seconds_since(since);
  gate.open();
  saver.finish();
  saver.next();
  const double stall_s = saver.next()->stall_s;
  CHECK(stall_s >= 1 + 0.9 * waited);
}

TEST_CASE("what is not kept goes, and the end waits for the last write") {
  const test::TemporaryFolder run;
  {
    Saver saver(core::system_disk(), {.run = run.path, .retention = {.last = 1}});
    for (const std::int64_t step : {1, 2, 3}) saver.save(contents_at(step, at::ones({1})));
  }
  CHECK(format::list_checkpoints(run.path / "checkpoints") == Steps{3});
}

TEST_CASE("a listener is notified of each checkpoint when it is durable") {
  const test::TemporaryFolder run;
  Steps heard;
  {
    Saver saver(core::system_disk(),
                {.run = run.path,
                 .retention = {.last = 9},
                 .published = [&](const Saved& saved, const auto& /*progress*/) {
                   if (std::filesystem::exists(saved.path / "manifest.json")) {
                     heard.push_back(saved.step);
                   }
                 }});
    for (const std::int64_t step : {1, 2}) saver.save(contents_at(step, at::ones({1})));
  }
  CHECK(heard == Steps{1, 2});
}

TEST_CASE("a write that fails is reported in its turn, and harms no other") {
  const test::TemporaryFolder run;
  std::atomic<bool> is_broken = false;
  core::WatchedDisk disk(core::system_disk(), [&is_broken] {
    if (is_broken) throw core::StorageError("the disk", "is broken", "buy another");
  });
  Saver saver(disk, {.run = run.path, .retention = {.last = 9}});
  saver.save(contents_at(1, at::ones({1})));
  saver.finish();
  is_broken = true;
  saver.save(contents_at(2, at::ones({1})));
  saver.finish();
  is_broken = false;
  saver.save(contents_at(3, at::full({1}, std::numeric_limits<float>::quiet_NaN())));
  saver.save(contents_at(4, at::ones({1})));
  saver.finish();
  CHECK(saver.next()->step == 1);
  CHECK_THROWS_AS(saver.next(), core::StorageError);
  CHECK_THROWS_AS(saver.next(), core::DivergedError);
  CHECK(saver.next()->step == 4);
  CHECK(!saver.next());
  CHECK(format::list_checkpoints(run.path / "checkpoints") == Steps{1, 4});
}

namespace {

// A share that lacks the last 2 of the 6 elements of "a".
Contents share_with_a_gap(std::int64_t step) {
  Contents share = contents_at(step, at::ones({4}));
  share.files.clear();
  TensorFile& file = share.file("model.safetensors");
  file.part = part_name(file.name, 0, 1);
  file.shards["a"] = {
      .tensor = at::ones({4}), .shape = {6}, .slices = {format::range_piece({6}, 0, 4)}};
  return share;
}

}  // namespace

TEST_CASE("a first save that cannot be read back is no checkpoint, and removes none") {
  const test::TemporaryFolder run;
  const std::filesystem::path checkpoints = run.path / "checkpoints";
  {
    Saver before(core::system_disk(), {.run = run.path, .retention = {.last = 1}});
    before.save(contents_at(1, at::ones({1})));
  }
  Saver saver(core::system_disk(), {.run = run.path, .retention = {.last = 1}});
  saver.save(share_with_a_gap(2));
  saver.finish();
  std::string said;
  try {
    saver.next();
  } catch (const core::CheckpointError& error) {
    said = error.found();
  }
  CHECK(said == "the tensor \"a\" of model.safetensors has 6 elements, and its pieces 4");
  CHECK(format::list_checkpoints(checkpoints) == Steps{1});
  CHECK(std::filesystem::read_symlink(checkpoints / "latest") == "step-00000001");
  saver.save(contents_at(3, at::ones({1})));
  saver.finish();
  CHECK(saver.next()->step == 3);
  CHECK(format::list_checkpoints(checkpoints) == Steps{3});
}

TEST_CASE("not beside training, a save returns when its checkpoint is durable, without a copy") {
  const test::TemporaryFolder run;
  Saver saver(core::system_disk(), {.run = run.path, .retention = {}, .beside = false});
  saver.save(contents_at(5, at::ones({1})));
  CHECK(format::list_checkpoints(run.path / "checkpoints") == Steps{5});
  const std::optional<Saved> saved = saver.next();
  REQUIRE(saved);
  CHECK(saved->stall_s >= saved->write_s);
}

TEST_CASE("a rank that waits for a save sends heartbeats only while the disk makes progress") {
  const test::TemporaryFolder run;
  Gate gate;
  std::atomic<int> beats = 0, beats_before = 0;
  core::WatchedDisk disk(core::system_disk(), [&gate] { gate.pass(); });
  Saver saver(disk, {.run = run.path, .retention = {}}, [&beats] { ++beats; });
  saver.save(contents_at(1, at::ones({1})));
  CHECK(beats == 0);  // it has not waited
  std::thread opener([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(850));
    beats_before = beats.load();
    gate.open();
  });
  saver.finish();
  opener.join();
  // Eight looks at a disk that was asked for one thing, which may have come behind the first look.
  CHECK(beats_before >= 1);
  CHECK(beats_before <= 2);
}
