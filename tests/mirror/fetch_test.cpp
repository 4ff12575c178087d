#include "lib/mirror/fetch.h"

#include <doctest/doctest.h>

#include "lib/core/error.h"
#include "lib/format/checkpoint/checkpoint_folder.h"
#include "lib/mirror/place.h"
#include "tests/format/checkpoint_support.h"
#include "tests/format/cut_support.h"
#include "tests/mirror/memory_storage.h"

namespace scaletrain::mirror {
namespace {

namespace fs = std::filesystem;

constexpr const char* kCopies = "s3://b/run";

// Copies of steps 1, 2 and 3.
struct Copies {
  Copies() {
    const test::TemporaryFolder run;
    const auto place = make_object_place(kCopies, storage);
    for (const int step : {1, 2, 3}) {
      place->put(OpenCheckpoint(test::publish_sensible(run.path, step)), [] {});
    }
  }
  static std::string file(const std::string& name) {
    return std::string(kCopies) + "/checkpoints/" + name;
  }
  // The step that comes into `run`, and what was reported, a line each.
  std::string fetched(const fs::path& run, std::int64_t beyond = -1) const {
    std::string said;
    const auto found = fetch_newest(
        core::system_disk(), storage, kCopies, run / "checkpoints", beyond,
        [&](const std::string& text) { said += text.substr(0, text.find('\n')) + "\n"; });
    if (!found) return said + "none";
    CHECK(format::check_checkpoint(found->checkpoint).step == found->step);
    CHECK(found->bytes == OpenCheckpoint(found->checkpoint).bytes());
    return said + std::to_string(found->step);
  }

  test::MemoryStorage storage;
};

}  // namespace

TEST_CASE("the newest that is whole comes, and only what is newer") {
  const Copies copies;
  const test::TemporaryFolder run;
  CHECK(copies.fetched(run.path, 3) == "none");
  CHECK(copies.fetched(run.path, 2) == "3");
  CHECK(format::list_checkpoints(run.path / "checkpoints") == std::vector<std::int64_t>{3});
  CHECK(list_copies(copies.storage, kCopies).front().url == Copies::file("step-00000003"));
}

TEST_CASE("a checkpoint in pieces comes back with the table of its pieces") {
  Copies copies;
  const test::TemporaryFolder run, away;
  const fs::path cut = test::publish_cut(run.path, test::Sensible(4), 4);
  make_object_place(kCopies, copies.storage)->put(OpenCheckpoint(cut), [] {});
  CHECK(copies.fetched(away.path) == "4");
  CHECK(format::model_digest(away.path / "checkpoints/step-00000004") == format::model_digest(cut));
}

TEST_CASE("copies that are damaged, cut or not finished are passed over with the reason") {
  Copies copies;
  std::string model = copies.storage.objects().at(Copies::file("step-00000003/model.safetensors"));
  model.back() = static_cast<char>(model.back() ^ 1);
  copies.storage.replace(Copies::file("step-00000003/model.safetensors"), model);
  copies.storage.remove(Copies::file("step-00000002/manifest.json"));
  const test::TemporaryFolder run;
  const std::string said = copies.fetched(run.path);
  CHECK(said.starts_with(Copies::file("step-00000003/model.safetensors") + ": has the XXH3-128 "));
  CHECK(said.ends_with(Copies::file("step-00000002/manifest.json") +
                       ": is missing: the copy was not finished\n1"));
  // Nothing of them stays.
  const fs::path checkpoints = run.path / "checkpoints";
  CHECK(std::distance(fs::directory_iterator(checkpoints), {}) == 1);
  copies.storage.replace(Copies::file("step-00000001/state.json"), "short");
  const test::TemporaryFolder another;
  CHECK(copies.fetched(another.path).ends_with("of its manifest\nnone"));
}

TEST_CASE("a manifest of another step, or one that a flip has changed, is no checkpoint") {
  Copies copies;
  const std::string first =
      copies.storage.objects().at(Copies::file("step-00000001/manifest.json"));
  copies.storage.replace(Copies::file("step-00000003/manifest.json"), first);
  copies.storage.replace(Copies::file("step-00000002/manifest.json"),
                         test::replaced(first, "\"step\": 1", "\"step\": 2"));
  const test::TemporaryFolder run;
  const std::string said = copies.fetched(run.path);
  CHECK(said.starts_with(Copies::file("step-00000003/manifest.json") + ": is of step 1\n" +
                         Copies::file("step-00000002/manifest.json") + ": has the SHA-256 "));
  CHECK(said.ends_with("\n1"));
}

TEST_CASE("a copy whose contents make no sense is passed over") {
  const test::TemporaryFolder run;
  test::MemoryStorage storage;
  const auto place = make_object_place(kCopies, storage);
  place->put(OpenCheckpoint(test::publish_sensible(run.path, 1)), [] {});
  test::Sensible wrong(2);
  wrong.updates = 7;
  place->put(OpenCheckpoint(test::publish(run.path, wrong, 2)), [] {});
  const test::TemporaryFolder here;
  std::string said;
  const auto found = fetch_newest(core::system_disk(), storage, kCopies, here.path / "checkpoints",
                                  -1, [&](const std::string& text) { said += text; });
  REQUIRE(found.has_value());
  CHECK(found->step == 1);
  CHECK_FALSE(said.empty());
  CHECK(format::list_checkpoints(here.path / "checkpoints") == std::vector<std::int64_t>{1});
}

TEST_CASE("a damaged checkpoint of the run is replaced by its copy") {
  const Copies copies;
  const test::TemporaryFolder run;
  const fs::path own = test::publish_sensible(run.path, 3);
  test::write_bytes(own / "state.json", "{}");
  CHECK(copies.fetched(run.path) == "3");
  CHECK_NOTHROW(format::check_checkpoint(own));
}

TEST_CASE("a folder is a place too, and one that is not there has no copies") {
  const test::TemporaryFolder folder;
  const auto place = make_folder_place(folder.file("copies"), core::system_disk());
  place->put(OpenCheckpoint(test::publish_sensible(folder.path / "run", 7)), [] {});
  const auto fetch = [&](const std::string& from) {
    return fetch_newest(core::system_disk(), storage::file_storage(), folder.file(from),
                        folder.path / "new/checkpoints", -1, [](const std::string&) {});
  };
  CHECK_FALSE(fetch("absent").has_value());
  CHECK(fetch("copies")->checkpoint == folder.path / "new/checkpoints/step-00000007");
}

TEST_CASE("a place that cannot be read ends it: what is there may be the newest") {
  struct Gone : test::MemoryStorage {
    std::unique_ptr<storage::Stream> stream(const std::string& path) const override {
      throw core::StorageError(path, "does not answer");
    }
  };
  Gone gone;
  const Copies copies;
  for (const auto& [path, bytes] : copies.storage.objects()) gone.replace(path, bytes);
  const test::TemporaryFolder run;
  test::warnings_of([&] {
    CHECK_THROWS_AS(fetch_newest(core::system_disk(), gone, kCopies, run.path / "checkpoints", -1,
                                 [](const std::string&) {}),
                    core::StorageError);
  });
  CHECK(format::list_checkpoints(run.path / "checkpoints").empty());
}

}  // namespace scaletrain::mirror
