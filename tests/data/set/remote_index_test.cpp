// Indexes of remote shards: beside them, in a folder, in memory.
#include <doctest/doctest.h>

#include <cstring>
#include <map>

#include "lib/core/error.h"
#include "lib/data/set/stored_index.h"
#include "tests/data/image_support.h"
#include "tests/temporary_folder.h"

using namespace scaletrain::data;  // NOLINT(google-build-using-namespace)
namespace storage = scaletrain::storage;

namespace {

const std::string kShard = "s3://bucket/set/a.tar";

struct Stored {
  std::string bytes;
  std::int64_t mtime_ns = 0;
  std::string etag = {};
};

class FakeObject : public storage::Object {
 public:
  FakeObject(Stored stored, int& reads) : stored_(std::move(stored)), reads_(reads) {}
  storage::Identity identity() const override {
    return {static_cast<std::int64_t>(stored_.bytes.size()), stored_.mtime_ns, stored_.etag};
  }
  void read(std::int64_t offset, std::span<std::byte> out) const override {
    ++reads_;
    std::memcpy(out.data(), stored_.bytes.data() + offset, out.size());
  }

 private:
  Stored stored_;
  int& reads_;
};

class FakeStorage : public storage::Storage {
 public:
  std::unique_ptr<storage::Object> open(const std::string& path) const override {
    const auto found = objects.find(path);
    if (found == objects.end()) throw scaletrain::core::DataError(path, "absent");
    return std::make_unique<FakeObject>(found->second, reads[path]);
  }
  std::vector<Entry> list(const std::string& /*folder*/) const override { return {}; }
  void write(const std::string& /*path*/, std::string_view /*bytes*/) const override {}
  bool write_if_absent(const std::string& /*path*/, std::string_view /*bytes*/) const override {
    return false;
  }

  StoredIndex index(const std::string& index_cache = "") const {
    return {kShard, *open(kShard), index_cache, *this};
  }

  std::map<std::string, Stored> objects;
  mutable std::map<std::string, int> reads;
};

// A shard of three samples with an index, made elsewhere, that says one label differently.
FakeStorage with_index(std::int64_t index_mtime_ns) {
  FakeStorage remote;
  remote.objects[kShard] = {grey_shard(0, 3), 50, "\"one\""};
  const StoredIndex sound = remote.index();
  const auto entries = sound.entries();
  std::vector<scaletrain::format::IndexEntry> changed(entries.begin(), entries.end());
  changed[2].label = 77;
  const auto bytes = static_cast<std::int64_t>(remote.objects[kShard].bytes.size());
  remote.objects[kShard + ".idx"] = {scaletrain::format::encode_index(changed, {bytes, 12345}),
                                     index_mtime_ns, "\"idx\""};
  remote.reads.clear();
  return remote;
}

}  // namespace

TEST_CASE("an index beside a remote shard is used without reading the shard") {
  const FakeStorage remote = with_index(50);
  const StoredIndex index = remote.index();
  CHECK(index.entries()[2].label == 77);
  CHECK_FALSE(index.kept_in_memory());
  CHECK(remote.reads[kShard] == 0);
}

TEST_CASE("it is kept in the folder for indexes, under the shard's version") {
  FakeStorage remote = with_index(50);
  const TemporaryFolder folder;
  CHECK(remote.index(folder.path.string()).entries()[2].label == 77);
  remote.objects.erase(kShard + ".idx");
  CHECK(remote.index(folder.path.string()).entries()[2].label == 77);
  CHECK(remote.reads[kShard] == 0);
  remote.objects[kShard].etag = "\"two\"";
  CHECK(remote.index(folder.path.string()).entries()[2].label == 2);
}

TEST_CASE("an older index, one of another size and a damaged one are left alone") {
  const auto label_of = [](auto change) {
    FakeStorage remote = with_index(50);
    change(remote.objects[kShard + ".idx"]);
    return remote.index().entries()[2].label;
  };
  CHECK(label_of([](Stored&) {}) == 77);
  CHECK(label_of([](Stored& index) { index.mtime_ns = 49; }) == 2);
  CHECK(label_of([](Stored& index) { index.bytes[17] ^= 1; }) == 2);
  CHECK(label_of([](Stored& index) { index.bytes.back() ^= 1; }) == 2);
  CHECK(label_of([](Stored& index) { index.bytes.resize(10); }) == 2);
}

TEST_CASE(
    "a remote shard is read through in large pieces, once for each process without a folder") {
  FakeStorage remote;
  remote.objects[kShard] = {grey_shard(0, 200), 50, "\"one\""};
  const StoredIndex index = remote.index();
  CHECK(index.entries().size() == 200);
  CHECK(index.kept_in_memory());
  CHECK(remote.reads[kShard] == 1);
  CHECK(scaletrain::format::index_path(kShard, "/cache").starts_with("/cache/a.tar."));
}
