#include "launcher/jobs/data_files.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "lib/core/disk/disk.h"
#include "tests/temporary_folder.h"

namespace scaletrain::launcher {
namespace {

void write(const std::filesystem::path& path, const std::string& text) {
  core::system_disk().make_folders(path.parent_path());
  core::write_durably(core::system_disk(), path, text);
}

}  // namespace

TEST_CASE("data files are listed by set, without URLs and missing files") {
  const test::TemporaryFolder folder;
  write(folder.path / "a.tar", "12345");
  write(folder.path / "weights", "123");
  recipe::Data data;
  data.train.shards = {(folder.path / "a.tar").string(), "s3://bucket/b.tar",
                       (folder.path / "missing.tar").string()};
  data.val.emplace().shards = {(folder.path / "a.tar").string()};
  const std::atomic<bool> never{false};
  const auto files = data_files(data, (folder.path / "weights").string(), never);
  REQUIRE(files);
  REQUIRE(files->size() == 3);
  CHECK(files->at(0).set == "train");
  CHECK(files->at(0).bytes == 5);
  CHECK(files->at(0).modified_ns > 0);
  CHECK(files->at(1).set == "val");
  CHECK(files->at(2).set == "weights");
  CHECK(files->at(2).bytes == 3);
}

TEST_CASE("an image folder is one entry whose listing depends on names and sizes") {
  const test::TemporaryFolder folder;
  write(folder.path / "cat" / "1.png", "one");
  write(folder.path / "dog" / "2.png", "second");
  recipe::Data data;
  data.train.folder = folder.path.string();
  const std::atomic<bool> never{false};
  const DataFile before = data_files(data, "", never)->at(0);
  CHECK(before.files == 2);
  CHECK(before.bytes == 9);
  CHECK(data_files(data, "", never)->at(0).listing == before.listing);
  std::filesystem::rename(folder.path / "dog" / "2.png", folder.path / "dog" / "3.png");
  const DataFile renamed = data_files(data, "", never)->at(0);
  CHECK(renamed.bytes == before.bytes);
  CHECK(renamed.listing != before.listing);
}

TEST_CASE("a list that is stopped is no list") {
  recipe::Data data;
  data.train.shards = {"/a.tar"};
  const std::atomic<bool> stop{true};
  CHECK(!data_files(data, "", stop));
}

TEST_CASE("a list is read back from JSON, without entries of another form") {
  const DataFile file{
      .set = "train", .path = "/a.tar", .files = 2, .bytes = 3, .modified_ns = 4, .listing = "ab"};
  nlohmann::ordered_json list = data_files_json({file});
  list.push_back({{"set", "val"}});
  const std::vector<DataFile> read = data_files_of(list);
  REQUIRE(read.size() == 1);
  CHECK(read[0].set == file.set);
  CHECK(read[0].path == file.path);
  CHECK(read[0].files == file.files);
  CHECK(read[0].bytes == file.bytes);
  CHECK(read[0].modified_ns == file.modified_ns);
  CHECK(read[0].listing == file.listing);
}

}  // namespace scaletrain::launcher
