// Compressed tars in the cache (lib/storage/cache.h), as Stores hands them out.
#include <doctest/doctest.h>

#include "lib/storage/stores.h"
#include "tests/format/tar/tar_support.h"
#include "tests/storage/packed.h"
#include "tests/storage/remote_support.h"
#include "tests/temporary_folder.h"

using namespace scaletrain::storage;  // NOLINT(google-build-using-namespace)
using scaletrain::test::TemporaryFolder;
namespace fs = std::filesystem;

namespace {

constexpr std::int64_t kMiB = 1 << 20;

struct UnpackFixture {
  Stores stores(std::int64_t max_bytes = 64 * kMiB) const {
    return {{}, scaletrain::recipe::Cache{folder.file("cache"), max_bytes}};
  }
  static std::string read(const Stores& stores, const std::string& path) {
    const auto object = stores.open(path);
    return read_text(*object, 0, static_cast<std::size_t>(object->identity().bytes));
  }
  std::vector<std::string> kept() const {
    std::vector<std::string> names;
    for (const auto& file : fs::directory_iterator(folder.path / "cache")) {
      if (file.path().extension() == ".data") names.push_back(file.path().filename());
    }
    return names;
  }

  TemporaryFolder folder;
};

}  // namespace

TEST_CASE("a compressed tar is kept as the tar that it holds") {
  const UnpackFixture f;
  const std::string text(3 * kMiB + 7, 'x');
  const std::string gzip = f.folder.write("a.tar.gz", packed(text, ARCHIVE_FILTER_GZIP));
  const std::string zstd = f.folder.write("b.tar.zst", packed(text + "y", ARCHIVE_FILTER_ZSTD));
  for (int process = 0; process < 2; ++process) {
    const Stores stores = f.stores();
    CHECK(f.read(stores, gzip) == text);
    CHECK(f.read(stores, zstd) == text + "y");
    CHECK(stores.open(gzip)->identity().bytes == 3 * kMiB + 7);
  }
  CHECK(f.kept().size() == 2);
  CHECK(f.kept()[0].find(".tar.") == 1);
  CHECK(f.kept()[0].find("gz") == std::string::npos);
}

TEST_CASE("entries stay within the limit though no size is known before") {
  const UnpackFixture f;
  std::vector<std::string> paths;
  for (const char name : {'a', 'b', 'c', 'd'}) {
    paths.push_back(f.folder.write(std::string(1, name) + ".tgz",
                                   packed(std::string(kMiB, name), ARCHIVE_FILTER_GZIP)));
  }
  const Stores stores = f.stores(2 * kMiB + kMiB / 2);
  for (int round = 0; round < 2; ++round) {  // the second decompresses them again
    for (const std::string& path : paths) {
      CHECK(f.read(stores, path) == std::string(kMiB, fs::path(path).filename().string()[0]));
      CHECK(f.kept().size() <= 2);
    }
  }
}

TEST_CASE("one that does not fit, is damaged or is replaced is reported, and nothing stays of it") {
  const UnpackFixture f;
  const std::string bomb =
      f.folder.write("bomb.tar.gz", packed(std::string(64 * kMiB, '\0'), ARCHIVE_FILTER_GZIP));
  const Stores small = f.stores(kMiB);
  CHECK(thrown_by([&] {
          small.open(bomb);
        }).starts_with("65 " + bomb + ": has more than 1048576 bytes decompressed\n"));
  const std::string cut = f.folder.write("cut.tar.gz", f.folder.read("bomb.tar.gz").substr(0, 999));
  CHECK(thrown_by([&] { small.open(cut); }).starts_with("65 " + cut + ": does not decompress: "));
  for (const auto& file : fs::directory_iterator(f.folder.path / "cache")) {
    CHECK(file.path().filename() == "lock");
  }

  const std::string path = f.folder.write("a.tar.gz", packed("first", ARCHIVE_FILTER_GZIP));
  const auto object = small.open(path);
  for (const auto& file : fs::directory_iterator(f.folder.path / "cache")) fs::remove(file);
  f.folder.write("a.tar.gz", packed("another", ARCHIVE_FILTER_GZIP));
  CHECK(thrown_by([&] { read_text(*object, 0, 5); }) ==
        "65 " + path +
            ": was replaced while it was read\n"
            "  start again, and do not change shards while they are read");
}

TEST_CASE("a recipe without a cache has nowhere to keep it") {
  const UnpackFixture f;
  const std::string path = f.folder.write("a.tar.gz", packed("text", ARCHIVE_FILTER_GZIP));
  CHECK(thrown_by([&] { Stores({}, std::nullopt).open(path); }) ==
        "65 " + path +
            ": is compressed, and there is no cache for its contents\n"
            "  name a folder in /data/cache, or decompress it");
}
