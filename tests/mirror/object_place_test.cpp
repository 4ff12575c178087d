#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "lib/core/error.h"
#include "lib/mirror/fetch.h"
#include "lib/mirror/place.h"
#include "tests/format/checkpoint_support.h"
#include "tests/mirror/memory_storage.h"

namespace scaletrain::mirror {
namespace {

namespace fs = std::filesystem;

constexpr const char* kPlace = "s3://b/run";

std::int64_t put_object(Place& place, const fs::path& checkpoint) {
  return place.put(OpenCheckpoint(checkpoint), [] {});
}

std::string folders_in(const test::MemoryStorage& storage) {
  std::vector<std::string> names;
  for (const auto& entry : storage.list(checkpoints_of(kPlace))) names.push_back(entry.name);
  return fmt::format("{}", fmt::join(names, " "));
}

// The step that a resume would go on from, "0" for none.
std::int64_t step_to_resume(const test::MemoryStorage& storage) {
  const test::TemporaryFolder run;
  const auto fetched = fetch_newest(core::system_disk(), storage, kPlace, run.path / "checkpoints",
                                    -1, [](const std::string&) {});
  return fetched ? fetched->step : 0;
}

// A checkpoint of `step` whose state is another one.
fs::path publish_changed(const fs::path& run, std::int64_t step) {
  test::Sensible changed(step);
  changed.state.validation_due = true;
  return test::publish(run, changed, step);
}

}  // namespace

TEST_CASE("an object store gets every file, and the manifest last and only where there is none") {
  const test::TemporaryFolder run;
  test::MemoryStorage storage;
  std::vector<std::string> written;
  storage.before = [&](const std::string& operation, const std::string& path) {
    if (operation != "remove_unfinished") {
      written.push_back(operation + " " + path.substr(path.rfind('/') + 1));
    }
  };
  const auto place = make_object_place(kPlace, storage);
  const fs::path path = test::publish_sensible(run.path, 1);
  const OpenCheckpoint checkpoint(path);
  CHECK(place->put(checkpoint, [] {}) == checkpoint.bytes());
  CHECK(written.size() == 6);
  CHECK(written.back() == "write_if_absent manifest.json");
  for (const auto& file : checkpoint.manifest().files) {
    const std::string& name = file.first;
    CHECK((storage.objects().at("s3://b/run/checkpoints/step-00000001/" + name) ==
           test::read_bytes(path / name)));
  }
  CHECK(put_object(*place, path) == 0);
  CHECK(written.size() == 6);
  CHECK(step_to_resume(storage) == 1);
}

TEST_CASE("an object store keeps what the run keeps, the manifest goes first") {
  const test::TemporaryFolder run;
  test::MemoryStorage storage;
  const auto place = make_object_place(kPlace, storage);
  std::vector<std::string> removed;
  storage.before = [&](const std::string& operation, const std::string& path) {
    if (operation == "remove") removed.push_back(path.substr(path.rfind("step-")));
  };
  for (const int step : {1, 2, 3, 4}) {
    put_object(*place, test::publish_sensible(run.path, step));
    place->retain(step, {.last = 2, .every_steps = 3});
  }
  CHECK(folders_in(storage) == "step-00000001 step-00000003 step-00000004");
  REQUIRE(removed.size() == 6);
  CHECK(removed.front() == "step-00000002/manifest.json");
  // A place opened anew reads what is there.
  const auto again = make_object_place(kPlace, storage);
  put_object(*again, test::publish_sensible(run.path, 5));
  again->retain(5, {.last = 1, .hours = 1});
  CHECK(folders_in(storage) == "step-00000001 step-00000003 step-00000004 step-00000005");
  again->retain(5, {.last = 1});
  CHECK(folders_in(storage) == "step-00000005");
}

TEST_CASE("nothing is removed where the newest is not what was written") {
  const test::TemporaryFolder run;
  test::MemoryStorage storage;
  const auto place = make_object_place(kPlace, storage);
  put_object(*place, test::publish_sensible(run.path, 1));
  put_object(*place, test::publish_sensible(run.path, 2));
  storage.replace("s3://b/run/checkpoints/step-00000002/model.safetensors", "short");
  CHECK(test::message_of<core::StorageError>([&] {
          place->retain(2, {.last = 1});
        }).starts_with("s3://b/run/checkpoints/step-00000002/model.safetensors: has 5 bytes"));
  CHECK(step_to_resume(storage) == 1);
}

TEST_CASE("a copy whose state nobody can read stays, one without a manifest goes") {
  const test::TemporaryFolder run;
  test::MemoryStorage storage;
  const auto place = make_object_place(kPlace, storage);
  put_object(*place, test::publish_sensible(run.path, 1));
  storage.replace("s3://b/run/checkpoints/step-00000001/state.json", "{");
  storage.replace("s3://b/run/checkpoints/step-00000002/model.safetensors", "half");
  const auto again = make_object_place(kPlace, storage);
  put_object(*again, test::publish_sensible(run.path, 3));
  again->retain(3, {.last = 1});
  CHECK(folders_in(storage) == "step-00000001 step-00000003");
}

TEST_CASE(
    "uploads that were never finished are dropped; a server that does not know how is asked once") {
  const test::TemporaryFolder run;
  test::MemoryStorage storage;
  int dropped = 0;
  storage.before = [&](const std::string& operation, const std::string& path) {
    if (operation != "remove_unfinished") return;
    CHECK(path == checkpoints_of(kPlace));
    if (++dropped == 2) throw core::StorageError(path, "NotImplemented");
  };
  const auto place = make_object_place(kPlace, storage);
  const std::string warned = test::warnings_of([&] {
    for (const int step : {1, 2, 3}) {
      put_object(*place, test::publish_sensible(run.path, step));
      place->retain(step, {.last = 1});
    }
  });
  CHECK(dropped == 2);
  CHECK(warned ==
        "warning: s3://b/run/checkpoints: NotImplemented; unfinished uploads may remain there; ");
  CHECK(folders_in(storage) == "step-00000003");
}

TEST_CASE("a damaged checkpoint is not sent") {
  const test::TemporaryFolder run;
  test::MemoryStorage storage;
  const fs::path path = test::publish_sensible(run.path, 1);
  std::string classes = test::read_bytes(path / "classes.json");
  classes.front() = '{';
  test::write_bytes(path / "classes.json", classes);
  CHECK_THROWS_AS(put_object(*make_object_place(kPlace, storage), path), core::CheckpointError);
  CHECK(step_to_resume(storage) == 0);
}

TEST_CASE("a manifest of another writer is an error") {
  const test::TemporaryFolder run;
  test::MemoryStorage storage;
  const fs::path path = test::publish_sensible(run.path, 1);
  storage.before = [&](const std::string& operation, const std::string& path_of) {
    if (operation == "write_if_absent") storage.replace(path_of, "theirs");
  };
  CHECK(test::message_of<core::StorageError>(
            [&] { put_object(*make_object_place(kPlace, storage), path); }) ==
        "s3://b/run/checkpoints/step-00000001/manifest.json: was written by another program "
        "meanwhile\n  give each run its own /checkpoint/mirror");
}

TEST_CASE("a store that fails at any moment keeps the copies that were acknowledged") {
  // Step 1 is there; step 2 comes, and then once more with another state, which replaces it.
  const test::TemporaryFolder run;
  const fs::path first = test::publish_sensible(run.path, 1);
  const test::TemporaryFolder other;
  const fs::path second = test::publish_sensible(run.path, 2);
  const fs::path changed = publish_changed(other.path, 2);
  bool is_done = false;
  int failures = 0;
  for (int cut = 0; !is_done; ++cut) {
    CAPTURE(cut);
    test::MemoryStorage storage;
    auto place = make_object_place(kPlace, storage);
    put_object(*place, first);
    int left = cut;
    storage.before = [&](const std::string& operation, const std::string& path) {
      if (operation == "remove_unfinished") return;
      if (left-- == 0) throw core::StorageError(path, "failed, as the test says");
    };
    std::int64_t acknowledged = 1;
    const auto attempt = [&] {
      put_object(*place, second);
      acknowledged = 2;
      place->retain(2, {.last = 1});
      put_object(*place, changed);
      place->retain(2, {.last = 1});
    };
    try {
      attempt();
      is_done = left >= 0;  // else a removal has failed, and was tried again
    } catch (const core::StorageError&) {
    }
    failures += is_done ? 0 : 1;
    const std::int64_t found = step_to_resume(storage);
    CHECK(found >= acknowledged);
    if (is_done) continue;
    // The same process tries again, or the next one begins anew.
    if (cut % 2 == 1) place = make_object_place(kPlace, storage);
    attempt();
    CHECK(step_to_resume(storage) == 2);
    CHECK(storage.list(checkpoints_of(kPlace)).size() == 1);
    CHECK(storage.names().size() == 6);
  }
  CHECK(failures > 20);
}

TEST_CASE("what cannot be deleted is a warning, and goes when that is allowed") {
  const test::TemporaryFolder run;
  const fs::path second = test::publish_sensible(run.path, 2);
  test::MemoryStorage storage;
  const auto housekeeping = std::make_shared<core::Housekeeping>();
  const auto place = make_object_place(
      kPlace, storage, [] {}, housekeeping);
  put_object(*place, test::publish_sensible(run.path, 1));
  storage.before = [](const std::string& operation, const std::string& path) {
    if (operation == "remove") throw core::StorageError(path, "403 AccessDenied");
  };
  const std::string warned = test::warnings_of([&] {
    for (int i = 0; i < 2; ++i) {
      put_object(*place, second);
      place->retain(2, {.last = 1});
    }
  });
  CHECK(warned ==
        "warning: s3://b/run/checkpoints/step-00000001/manifest.json: 403 AccessDenied; it is "
        "kept, and removed later if possible; ");
  CHECK(housekeeping->failures() == 2);
  CHECK(step_to_resume(storage) == 2);
  storage.before = nullptr;
  place->retain(2, {.last = 1});
  CHECK(folders_in(storage) == "step-00000002");
}

}  // namespace scaletrain::mirror
