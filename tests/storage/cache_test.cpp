#include "lib/storage/cache.h"

#include <doctest/doctest.h>

#include <atomic>
#include <thread>

#include "tests/format/tar/tar_support.h"
#include "tests/storage/remote_support.h"
#include "tests/temporary_folder.h"

using namespace scaletrain::storage;  // NOLINT(google-build-using-namespace)
using scaletrain::test::TemporaryFolder;
namespace fs = std::filesystem;

namespace {

constexpr std::int64_t kMegabyte = 1 << 20;
constexpr double kPatienceS = 20;

// A far storage in memory that counts how often it is read from the front.
class FakeOrigin : public Storage {
 public:
  struct Stored {
    std::string bytes, etag, md5;
  };

  std::unique_ptr<Object> open(const std::string& path) const override {
    return std::make_unique<FakeObject>(*this, open_stored(path));
  }
  std::vector<Entry> list(const std::string& /*folder*/) const override { return {}; }
  void write(const std::string& path, std::string_view bytes) const override {
    const std::lock_guard lock(mutex);
    objects[path] = {std::string(bytes), "\"" + std::to_string(++versions) + "\"", ""};
  }
  bool write_if_absent(const std::string& /*path*/, std::string_view /*bytes*/) const override {
    return false;
  }
  std::unique_ptr<Stream> stream(const std::string& path) const override {
    if (!sends_whole) return Storage::stream(path);
    return std::make_unique<WholeObject>(open_stored(path).bytes);
  }

  mutable std::mutex mutex;
  mutable std::map<std::string, Stored> objects;
  mutable int versions = 0;
  mutable std::atomic<int> fetches = 0;
  mutable std::atomic<int> damaged_fetches = 0;  // so many of the next come with a flipped byte
  bool sends_whole = false;                      // no ranges

 private:
  Stored open_stored(const std::string& path) const {
    const std::lock_guard lock(mutex);
    const auto found = objects.find(path);
    if (found == objects.end()) throw scaletrain::core::DataError(path, "absent");
    return found->second;
  }

  class WholeObject : public Stream {
   public:
    explicit WholeObject(std::string bytes) : bytes_(std::move(bytes)) {}
    std::size_t read(std::span<std::byte> out) override {
      const std::size_t count = std::min(out.size(), bytes_.size() - used_);
      std::copy_n(std::as_bytes(std::span(bytes_)).begin() + static_cast<std::ptrdiff_t>(used_),
                  count, out.begin());
      used_ += count;
      return count;
    }

   private:
    std::string bytes_;
    std::size_t used_ = 0;
  };

  class FakeObject : public Object {
   public:
    FakeObject(const FakeOrigin& origin, Stored stored)
        : origin_(origin), stored_(std::move(stored)) {}
    Identity identity() const override {
      return {static_cast<std::int64_t>(stored_.bytes.size()), 0, stored_.etag, stored_.md5};
    }
    bool has_ranges() const override { return !origin_.sends_whole; }
    void read(std::int64_t offset, std::span<std::byte> out) const override {
      if (!has_ranges()) throw scaletrain::core::DataError("a", "no ranges");
      if (offset == 0) ++origin_.fetches;
      const bool is_damaged = offset == 0 && origin_.damaged_fetches-- > 0;
      for (std::size_t i = 0; i < out.size(); ++i) {
        out[i] = static_cast<std::byte>(stored_.bytes[static_cast<std::size_t>(offset) + i]);
      }
      if (is_damaged) out[0] ^= std::byte{1};
    }

   private:
    const FakeOrigin& origin_;
    Stored stored_;
  };
};

struct Fixture {
  std::string open_and_read(Cache& cache, const std::string& path) const {
    const auto object = cache.open(origin, path);
    return read_text(*object, 0, static_cast<std::size_t>(object->identity().bytes));
  }
  std::vector<std::string> files(const std::string& extension) const {
    std::vector<std::string> found;
    for (const auto& file : fs::directory_iterator(folder.path)) {
      if (file.path().extension() == extension) found.push_back(file.path().filename());
    }
    std::sort(found.begin(), found.end());
    return found;
  }

  TemporaryFolder folder;
  FakeOrigin origin;
};

}  // namespace

TEST_CASE("an object is fetched once, for every reader, process and thread") {
  const Fixture f;
  const std::string bytes(3 * kMegabyte + 5, 'x');
  f.origin.write("s3://b/a.tar", bytes);
  Cache one(f.folder.path, 64 * kMegabyte, kPatienceS);
  Cache other(f.folder.path, 64 * kMegabyte, kPatienceS);  // as of another process
  std::vector<std::thread> threads;
  std::atomic<int> right = 0;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back(
        [&, i] { right += f.open_and_read(i % 2 == 0 ? one : other, "s3://b/a.tar") == bytes; });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(right == 8);
  CHECK(f.origin.fetches == 1);
  CHECK(f.files(".data").size() == 1);
  CHECK(f.files(".data")[0].starts_with("a.tar."));
  CHECK(f.files(".part").empty());
  const auto object = one.open(f.origin, "s3://b/a.tar");
  CHECK(object->identity().etag == "\"1\"");
  CHECK(read_text(*object, kMegabyte - 1, 3) == "xxx");
  CHECK(thrown_by([&] { read_text(*object, 3 * kMegabyte + 4, 2); }) ==
        "65 s3://b/a.tar: ends at byte 3145733 while bytes 3145732 to 3145734 are read\n"
        "  the object is truncated, or its index is of another one");
}

TEST_CASE("small objects that many fetch at once are fetched once each, whoever comes when") {
  const Fixture f;
  constexpr int kObjects = 300;
  const auto path_of = [](int i) { return "s3://b/" + std::to_string(i); };
  for (int i = 0; i < kObjects; ++i) f.origin.write(path_of(i), "bytes " + std::to_string(i));
  std::atomic<int> right = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 6; ++t) {
    threads.emplace_back([&] {
      Cache cache(f.folder.path, 64 * kMegabyte, kPatienceS);  // as of another process
      for (int i = 0; i < kObjects; ++i) {
        right += f.open_and_read(cache, path_of(i)) == "bytes " + std::to_string(i) ? 1 : 0;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(right == 6 * kObjects);
  CHECK(f.origin.fetches == kObjects);
}

TEST_CASE("an object that comes whole only is kept, and read by ranges from there") {
  Fixture fixture;
  fixture.origin.sends_whole = true;
  fixture.origin.write("s3://b/a.tar", std::string(3 * kMegabyte, 'a') + "end");
  Cache cache(fixture.folder.path, 8 * kMegabyte, kPatienceS);
  const auto object = cache.open(fixture.origin, "s3://b/a.tar");
  CHECK(object->has_ranges());
  CHECK(read_text(*object, 3 * kMegabyte, 3) == "end");
}

TEST_CASE("a warm cache does not fetch; another version does") {
  const Fixture f;
  f.origin.write("s3://b/a.tar", "first");
  {
    Cache cache(f.folder.path, kMegabyte, kPatienceS);
    CHECK(f.open_and_read(cache, "s3://b/a.tar") == "first");
  }
  {
    Cache cache(f.folder.path, kMegabyte, kPatienceS);
    CHECK(f.open_and_read(cache, "s3://b/a.tar") == "first");
    CHECK(f.origin.fetches == 1);
  }
  f.origin.write("s3://b/a.tar", "other");
  Cache cache(f.folder.path, kMegabyte, kPatienceS);
  CHECK(f.open_and_read(cache, "s3://b/a.tar") == "other");
  CHECK(f.origin.fetches == 2);
}

TEST_CASE("the least recently used are removed, and what is removed while in use comes again") {
  const Fixture f;
  for (const char name : {'a', 'b', 'c', 'd'}) {
    f.origin.write(std::string("s3://b/") + name, std::string(kMegabyte, name));
  }
  Cache cache(f.folder.path, 3 * kMegabyte + kMegabyte / 2, kPatienceS);
  const auto a = cache.open(f.origin, "s3://b/a");
  CHECK(read_text(*a, 0, 2) == "aa");
  f.open_and_read(cache, "s3://b/b");
  f.open_and_read(cache, "s3://b/c");
  // As if b had been used last, long after a and c.
  const auto age = [&](const std::string& name, int hours) {
    for (const auto& file : f.files(".json")) {
      if (!file.starts_with(name)) continue;
      fs::last_write_time(f.folder.path / file,
                          fs::file_time_type::clock::now() - std::chrono::hours(hours));
    }
  };
  age("a", 3);
  age("b", 1);
  age("c", 2);
  f.open_and_read(cache, "s3://b/d");
  CHECK(f.files(".data").size() == 3);
  CHECK(f.files(".data")[0].starts_with("b."));
  const int before = f.origin.fetches;
  CHECK(read_text(*a, 5, 2) == "aa");
  CHECK(f.origin.fetches == before + 1);
  CHECK(f.files(".data").size() == 3);
}

TEST_CASE("no room is taken above the limit, however many are fetched at once") {
  const Fixture f;
  for (int i = 0; i < 6; ++i) {
    f.origin.write("s3://b/" + std::to_string(i),
                   std::string(kMegabyte, static_cast<char>('a' + i)));
  }
  const CacheFolder entries(f.folder.path, 2 * kMegabyte + kMegabyte / 2);
  {
    const auto first = entries.begin("first", kMegabyte),
               second = entries.begin("second", kMegabyte);
    REQUIRE(first);
    REQUIRE(second);
    CHECK_FALSE(entries.begin("third", kMegabyte));
    CHECK(entries.begin("small", 1000));
    CHECK(f.files(".part").size() == 2);
  }
  CHECK(entries.begin("third", kMegabyte));

  Cache cache(f.folder.path, entries.max_bytes(), kPatienceS);
  std::atomic<int> right = 0;
  std::vector<std::jthread> readers;
  for (int i = 0; i < 6; ++i) {
    readers.emplace_back([&, i] {
      const std::string text = f.open_and_read(cache, "s3://b/" + std::to_string(i));
      right += text == std::string(kMegabyte, static_cast<char>('a' + i)) ? 1 : 0;
    });
  }
  readers.clear();  // joins
  CHECK(right == 6);
  CHECK(f.files(".data").size() == 2);
  CHECK(f.files(".part").empty());
}

TEST_CASE("an object that is larger than the cache is read from where it is") {
  const Fixture f;
  f.origin.write("s3://b/a", std::string(2 * kMegabyte, 'a'));
  Cache cache(f.folder.path, kMegabyte, kPatienceS);
  CHECK(read_text(*cache.open(f.origin, "s3://b/a"), 7, 3) == "aaa");
  CHECK(f.files(".data").empty());
}

TEST_CASE("damage on the way is noticed by the MD5 and fetched again") {
  const Fixture f;
  f.origin.write("s3://b/a", "0123456789");
  f.origin.objects["s3://b/a"].md5 = "781e5e245d69b566979b86e28d23f2c7";
  f.origin.damaged_fetches = 2;
  Cache cache(f.folder.path, kMegabyte, kPatienceS);
  CHECK(f.open_and_read(cache, "s3://b/a") == "0123456789");
  CHECK(f.origin.fetches == 3);

  f.origin.write("s3://b/b", "0123456789");
  f.origin.objects["s3://b/b"].md5 = std::string(32, '0');
  CHECK(thrown_by([&] { cache.open(f.origin, "s3://b/b"); }) ==
        "74 s3://b/b: came 3 times with another MD5 than the server's ETag says\n"
        "  bytes are damaged in transit: use an endpoint with https://");
  CHECK(f.files(".part").empty());
}

TEST_CASE("damage in the folder is noticed before the first read of a process") {
  const Fixture f;
  const std::string bytes(2 * kMegabyte, 'x');
  f.origin.write("s3://b/a", bytes);
  const auto damage_and_read = [&](auto damage) {
    {
      Cache cache(f.folder.path, 64 * kMegabyte, kPatienceS);
      CHECK(f.open_and_read(cache, "s3://b/a") == bytes);
    }
    damage(f.folder.path / f.files(".data")[0], f.folder.path / f.files(".json")[0]);
    Cache cache(f.folder.path, 64 * kMegabyte, kPatienceS);
    CHECK(f.open_and_read(cache, "s3://b/a") == bytes);
  };
  damage_and_read([](const fs::path& data, const fs::path&) {
    std::fstream file(data, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(kMegabyte + 17);
    file.put('y');
  });
  CHECK(f.origin.fetches == 2);
  damage_and_read([](const fs::path& data, const fs::path&) { fs::resize_file(data, 100); });
  CHECK(f.origin.fetches == 3);
  damage_and_read([](const fs::path&, const fs::path& json) { fs::resize_file(json, 0); });
  CHECK(f.origin.fetches == 4);
  damage_and_read([](const fs::path& data, const fs::path&) { fs::remove(data); });
  CHECK(f.origin.fetches == 5);
  damage_and_read([](const fs::path&, const fs::path& json) { fs::remove(json); });
  CHECK(f.origin.fetches == 6);
}

TEST_CASE("what a killed process left behind is taken over or removed") {
  const Fixture f;
  f.origin.write("s3://b/a", std::string(kMegabyte, 'a'));
  {
    Cache cache(f.folder.path, 64 * kMegabyte, kPatienceS);
    f.open_and_read(cache, "s3://b/a");
  }
  const std::string key = f.files(".data")[0].substr(0, f.files(".data")[0].size() - 5);
  fs::remove(f.folder.path / (key + ".json"));
  fs::rename(f.folder.path / (key + ".data"), f.folder.path / (key + ".part"));
  f.folder.write("other.tar.0123456789abcdef.part", "half");
  Cache cache(f.folder.path, 64 * kMegabyte, kPatienceS);
  CHECK(f.open_and_read(cache, "s3://b/a") == std::string(kMegabyte, 'a'));
  CHECK(f.files(".part").empty());
}

TEST_CASE("what is wanted next is fetched ahead, as much as fits into half of the cache") {
  const Fixture f;
  std::vector<Cache::Wanted> wanted;
  for (int i = 0; i < 8; ++i) {
    const std::string path = "s3://b/" + std::to_string(i);
    f.origin.write(path, std::string(kMegabyte, 'x'));
    wanted.push_back({&f.origin, path});
  }
  wanted.insert(wanted.begin() + 1, {&f.origin, "s3://b/absent"});  // left to who opens it
  {
    Cache cache(f.folder.path, 9 * kMegabyte, kPatienceS);
    cache.prefetch(wanted);
    while (f.files(".data").size() < 4) std::this_thread::yield();
    CHECK(f.open_and_read(cache, "s3://b/0") == std::string(kMegabyte, 'x'));
  }
  // What was opened is not ahead any more: there may have been time for another one.
  const std::size_t there = f.files(".data").size();
  CHECK((there == 4 || there == 5));
  CHECK(f.origin.fetches == static_cast<int>(there));
}

TEST_CASE("what is fetched ahead is this process's share, of objects of unknown size too") {
  for (const std::string scheme : {"s3://b/", "pipe:cat "}) {
    CAPTURE(scheme);
    const Fixture f;
    std::vector<Cache::Wanted> wanted;
    for (int i = 0; i < 9; ++i) {
      const std::string path = scheme + std::to_string(i);
      f.origin.write(path, std::string(kMegabyte, 'x'));
      if (i > 0) wanted.push_back({&f.origin, path});
    }
    {
      Cache cache(f.folder.path, 9 * kMegabyte, kPatienceS, 2);
      CHECK(f.open_and_read(cache, scheme + "0") == std::string(kMegabyte, 'x'));
      cache.prefetch(wanted);
      while (f.files(".data").size() < 3) std::this_thread::yield();
      CHECK(f.open_and_read(cache, scheme + "0") == std::string(kMegabyte, 'x'));
    }
    CHECK(f.files(".data").size() == 3);
    CHECK(f.origin.fetches == 3);
  }
}

TEST_CASE("a folder that cannot be made is a storage error that names it") {
  CHECK(thrown_by([] {
          const Cache cache("/dev/null/cache", kMegabyte, kPatienceS);
        }).starts_with("74 /dev/null/cache: cannot make the folder: "));
}
