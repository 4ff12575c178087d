#include "lib/format/tar/shard_index.h"

#include <doctest/doctest.h>

#include <cstring>

#include "lib/core/text/hash.h"
#include "tests/format/tar/tar_support.h"
#include "tests/temporary_folder.h"

using namespace scaletrain::format;  // NOLINT(google-build-using-namespace)

namespace {

const std::vector<IndexEntry> kEntries{{0, 512, 700, 3}, {5, 1536, 1, 0}};
constexpr ShardVersion kVersion{10240, 1'700'000'000'123'456'789};

}  // namespace

TEST_CASE("index_shard finds images, headers, sizes and labels") {
  const std::string name = "a.tar";
  const auto index = [&](const std::string& text) {
    return index_shard(name, static_cast<std::int64_t>(text.size()),
                       [&](std::int64_t offset, std::span<std::byte> out) {
                         if (!out.empty())
                           std::memcpy(out.data(), text.data() + offset, out.size());
                       });
  };
  const std::string sound = tar_member("1.png", std::string(700, 'p')) + tar_member("1.cls", "3") +
                            tar_entry({.name = "long", .type = 'L'}, "2.png") +
                            tar_member("x", "ab") + tar_member("2.cls", "5") + tar_end();
  const std::vector<IndexEntry> expected{
      {0, 512, 700, 3},  // header, 700 bytes in two blocks
      {5, 1536, 2,
       5},  // after 3 blocks of 1.png and 2 of 1.cls; long name's header and text, header
  };
  CHECK(index(sound) == expected);
}

TEST_CASE("an entry says where a list of classes stands, before its image or behind it") {
  const std::string name = "a.tar";
  const std::string text = tar_member("1.png", std::string(700, 'p')) +
                           tar_member("1.cls", "[3, 1]") + tar_member("2.cls", "4 5") +
                           tar_member("2.png", "p") + tar_end();
  const std::vector<IndexEntry> entries =
      index_shard(name, static_cast<std::int64_t>(text.size()),
                  [&](std::int64_t offset, std::span<std::byte> out) {
                    if (!out.empty()) std::memcpy(out.data(), text.data() + offset, out.size());
                  });
  REQUIRE(entries.size() == 2);
  CHECK(entries[0].has_list());
  CHECK(entries[0].list_block() == 3);  // behind the header and two blocks of the image
  CHECK(entries[1].has_list());
  CHECK(entries[1].begin_block == 7);
  CHECK(entries[1].list_block() == 5);
  CHECK_FALSE(IndexEntry{.label = 0x7fffffff}.has_list());
}

TEST_CASE("several threads find what one finds, in a shard whose files look like a tar too") {
  const std::string name = "a.tar";
  const auto index = [&](const std::string& text, int threads) {
    return index_shard(
        name, static_cast<std::int64_t>(text.size()),
        [&](std::int64_t offset, std::span<std::byte> out) {
          if (!out.empty()) std::memcpy(out.data(), text.data() + offset, out.size());
        },
        {}, threads);
  };
  const auto sample = [](int number, const std::string& image) {
    return tar_entry({.name = fmt::format("long/{}", number), .type = 'L'},
                     fmt::format("{:06d}.png", number)) +
           tar_member("x", image) + tar_member(fmt::format("{:06d}.cls", number), "5");
  };
  constexpr int kSamples = 360;  // 36 MB: up to 4 parts
  const std::string plain(100'000, 'p');
  // As an image, a tar of samples that repeat those of the shard.
  std::string tar = sample(1, "1") + sample(2, "2");
  while (tar.size() < plain.size()) tar += tar;
  for (const std::string& image : {plain, tar}) {
    std::string shard;
    for (int i = 0; i < kSamples; ++i) shard += sample(i, image);
    const std::vector<IndexEntry> expected = index(shard + tar_end(), 1);
    CHECK(expected.size() == kSamples);
    for (const int threads : {2, 3, 8}) CHECK(index(shard + tar_end(), threads) == expected);

    const auto error = [&](const std::string& text, int threads) {
      return message_of([&] { index(text, threads); });
    };
    for (const int number : {7, kSamples - 3}) {  // of the first part, and of the last
      const std::string repeated = shard + sample(number, "") + tar_end();
      CHECK(error(repeated, 3)
                .starts_with(fmt::format("a.tar: {:06d}: the key is used again", number)));
      CHECK(error(repeated, 3) == error(repeated, 1));
    }
    const std::string half = shard + tar_member("half.png", "p") + tar_end();
    CHECK(error(half, 3).starts_with("a.tar: half: has no label"));
    CHECK(error(shard, 3) == error(shard, 1));  // without an end
    // A header behind the first part is damaged.
    std::string damaged = shard + tar_end();
    damaged[damaged.find("000350.cls") + 3] = '!';
    CHECK(error(damaged, 3).find("its checksum is wrong") != std::string::npos);
    CHECK(error(damaged, 3) == error(damaged, 1));
  }
}

TEST_CASE("an index is read back by mapping it") {
  const scaletrain::test::TemporaryFolder folder;
  const std::string bytes = encode_index(kEntries, kVersion);
  CHECK(bytes.size() == 88 + 2 * 16);
  const auto index = MappedIndex::open(folder.write("a.tar.idx", bytes), kVersion);
  REQUIRE(index);
  CHECK(std::vector<IndexEntry>(index->entries().begin(), index->entries().end()) == kEntries);
}

TEST_CASE("the index of an empty shard is an index") {
  const scaletrain::test::TemporaryFolder folder;
  const auto index =
      MappedIndex::open(folder.write("a.tar.idx", encode_index({}, kVersion)), kVersion);
  REQUIRE(index);
  CHECK(index->entries().empty());
}

TEST_CASE("an index that is absent, stale, damaged or of another format is no index") {
  const scaletrain::test::TemporaryFolder folder;
  const std::string path = folder.file("a.tar.idx");
  CHECK(!MappedIndex::open(path, kVersion));
  const std::string bytes = encode_index(kEntries, kVersion);
  folder.write("a.tar.idx", bytes);
  CHECK(!MappedIndex::open(path, {kVersion.bytes + 1, kVersion.mtime_ns}));
  CHECK(!MappedIndex::open(path, {kVersion.bytes, kVersion.mtime_ns + 1}));
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    CAPTURE(i);
    std::string damaged = bytes;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x10);
    folder.write("a.tar.idx", damaged);
    CHECK(!MappedIndex::open(path, kVersion));
    folder.write("a.tar.idx", bytes.substr(0, i));
    CHECK(!MappedIndex::open(path, kVersion));
  }
  CHECK(!MappedIndex::open(folder.path, kVersion));  // a folder
}

TEST_CASE("an index is of one list of excluded keys, and keeps the SHA-256 of its shard") {
  const scaletrain::test::TemporaryFolder folder;
  const std::vector<std::string> keys{"a", "b/c"};
  CHECK(excluded_digest({}) == 0);
  CHECK(excluded_digest(keys) == scaletrain::core::xxh3_64(std::string("a\0b/c\0", 6)));
  const std::string sha256 = scaletrain::core::Sha256().update("shard").hex();
  const ShardVersion version{10240, 1, excluded_digest(keys)};
  const std::string path = folder.write("a.tar.idx", encode_index(kEntries, version, sha256));
  CHECK(!MappedIndex::open(path, {10240, 1, 0}));
  const auto index = MappedIndex::open(path, version);
  REQUIRE(index);
  CHECK(index->sha256() == sha256);
  folder.write("a.tar.idx", encode_index(kEntries, version));
  CHECK(MappedIndex::open(path, version)->sha256().empty());
}

TEST_CASE("the file's first bytes are those of docs/reference/formats/index.md") {
  const std::string bytes = encode_index(kEntries, {10240, 1});
  const std::string header(
      "sctridx\n"
      "\x02\0\0\0"
      "\x10\0\0\0"
      "\0\x28\0\0\0\0\0\0"
      "\x01\0\0\0\0\0\0\0"
      "\x02\0\0\0\0\0\0\0",
      40);
  CHECK(bytes.substr(0, 40) == header);
  const std::string second(
      "\x05\0\0\0"
      "\0\x06\0\0"
      "\x01\0\0\0"
      "\0\0\0\0",
      16);
  CHECK(bytes.substr(88 + 16) == second);
  const std::uint64_t checksum =
      scaletrain::core::xxh3_64(bytes.substr(88), scaletrain::core::xxh3_64(std::string(32, '\0')));
  CHECK(std::memcmp(&checksum, bytes.data() + 40, 8) == 0);
}

TEST_CASE("a shard that is too large for the index is refused") {
  CHECK(message_of([] {
          index_shard("a.tar", (std::int64_t{1} << 41) + 1,
                      [](std::int64_t, std::span<std::byte>) {});
        }) ==
        "a.tar: a shard of 2199023255553 bytes\n"
        "  at most 2199023255552 bytes are allowed: write more and smaller shards");
}
