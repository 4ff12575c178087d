#include "lib/data/set/stored_index.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <thread>

#include "tests/data/image_support.h"
#include "tests/temporary_folder.h"

using namespace scaletrain::data;  // NOLINT(google-build-using-namespace)
namespace fs = std::filesystem;
namespace format = scaletrain::format;

namespace {

StoredIndex open_index(const std::string& shard, const std::string& cache = "") {
  return {shard, *scaletrain::storage::file_storage().open(shard), cache};
}

}  // namespace

TEST_CASE("an index is written once and read afterwards") {
  const TemporaryFolder folder;
  const std::string shard = folder.write("a.tar", grey_shard(0, 3));
  CHECK(open_index(shard).entries().size() == 3);
  // Another label in the stored index shows that it is the one that is read.
  const auto identity = scaletrain::storage::file_storage().open(shard)->identity();
  const StoredIndex index = open_index(shard);
  const auto entries = index.entries();
  std::vector<scaletrain::format::IndexEntry> changed(entries.begin(), entries.end());
  changed[2].label = 77;
  folder.write("a.tar.idx",
               scaletrain::format::encode_index(changed, {identity.bytes, identity.mtime_ns}));
  CHECK(open_index(shard).entries()[2].label == 77);
}

TEST_CASE("a stale or damaged index is built again") {
  const TemporaryFolder folder;
  const std::string shard = folder.write("a.tar", grey_shard(0, 3));
  open_index(shard);
  const std::string sound = folder.read("a.tar.idx");
  folder.write("a.tar.idx", sound.substr(0, sound.size() - 1));
  CHECK(open_index(shard).entries().size() == 3);
  CHECK(folder.read("a.tar.idx") == sound);
  folder.write("a.tar", grey_shard(0, 4));
  CHECK(open_index(shard).entries().size() == 4);
  // The same size at another time.
  const timespec times[2] = {{5, 7}, {5, 7}};  // NOLINT(modernize-avoid-c-arrays): the call's
  REQUIRE(::utimensat(AT_FDCWD, shard.c_str(), &times[0], 0) == 0);
  const std::string before = folder.read("a.tar.idx");
  open_index(shard);
  CHECK(folder.read("a.tar.idx") != before);
}

TEST_CASE("with index_cache the index lies there under the name and a hash of the whole path") {
  const TemporaryFolder folder;
  const std::string a = folder.write("a/x.tar", grey_shard(0, 2)),
                    b = folder.write("b/x.tar", grey_shard(0, 3));
  const std::string cache = folder.file("cache/deep");
  CHECK(open_index(a, cache).entries().size() == 2);
  CHECK(open_index(b, cache).entries().size() == 3);
  CHECK(!fs::exists(a + ".idx"));
  CHECK(format::index_path(a, cache) != format::index_path(b, cache));
  CHECK(format::index_path(a, cache) == format::index_path(folder.file("b/../a/x.tar"), cache));
  CHECK(fs::path(format::index_path(a, cache)).filename().string().starts_with("x.tar."));
  CHECK(fs::exists(format::index_path(a, cache)));
  CHECK(format::index_path(a, "") == a + ".idx");
}

TEST_CASE("an index that cannot be written is kept in memory") {
  const TemporaryFolder folder;
  const std::string shard = folder.write("a.tar", grey_shard(0, 3));
  const std::string blocked = folder.write("file", "not a folder");
  const StoredIndex index = open_index(shard, blocked);
  CHECK(index.kept_in_memory());
  CHECK(index.entries().size() == 3);
  CHECK(!open_index(shard).kept_in_memory());
}

TEST_CASE("excluded samples are left out, and the index follows the list") {
  const TemporaryFolder folder;
  const std::string shard = folder.write("a.tar", grey_shard(0, 4));
  const auto labels_without = [&](const std::vector<std::string>& excluded) {
    const auto& storage = scaletrain::storage::file_storage();
    const StoredIndex index(shard, *storage.open(shard), "", storage, excluded);
    std::vector<std::uint32_t> labels;
    for (const auto& entry : index.entries()) labels.push_back(entry.label);
    return labels;
  };
  CHECK(labels_without({}) == std::vector<std::uint32_t>{0, 1, 2, 3});
  CHECK(labels_without({"00002"}) == std::vector<std::uint32_t>{0, 1, 3});
  CHECK(labels_without({"00000", "00002"}) == std::vector<std::uint32_t>{1, 3});
  // The shard's SHA-256 goes from one index to the next, whatever they leave out.
  const std::string sha256(64, 'a'), path = format::index_path(shard, "");
  const format::ShardVersion version =
      version_of(scaletrain::storage::file_storage().open(shard)->identity());
  folder.write("a.tar.idx", format::encode_index({}, version, sha256));
  CHECK(labels_without({"00002"}) == std::vector<std::uint32_t>{0, 1, 3});
  CHECK(format::recorded_sha256(path, version) == sha256);
  CHECK(format::recorded_sha256(path, {version.bytes, version.mtime_ns + 1, 0}).empty());
  CHECK(labels_without({}) == std::vector<std::uint32_t>{0, 1, 2, 3});
}

TEST_CASE("several may build one index at once") {
  const TemporaryFolder folder;
  const std::string shard = folder.write("a.tar", grey_shard(0, 50));
  std::vector<std::size_t> found(8);
  std::vector<std::thread> threads;
  for (std::size_t& count : found) {
    threads.emplace_back([&] { count = open_index(shard).entries().size(); });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::size_t count : found) CHECK(count == 50);
  CHECK(open_index(shard).entries().size() == 50);
}
