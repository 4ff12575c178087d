#include "lib/format/tar/tar.h"

#include <archive.h>
#include <archive_entry.h>
#include <doctest/doctest.h>

#include <cstring>
#include <random>

#include "tests/format/tar/tar_support.h"

using namespace scaletrain::format;  // NOLINT(google-build-using-namespace)

namespace {

const std::string kName = "a.tar";

ReadAt reader_of(const std::string& tar) {
  return [&tar](std::int64_t offset, std::span<std::byte> out) {
    const auto at = static_cast<std::size_t>(offset);
    REQUIRE(at + out.size() <= tar.size());
    if (!out.empty()) std::memcpy(out.data(), tar.data() + at, out.size());
  };
}

std::vector<TarMember> read_all(const std::string& tar, std::int64_t window = 1 << 16) {
  const ReadAt read = reader_of(tar);
  TarReader reader(kName, static_cast<std::int64_t>(tar.size()), read, 0, window);
  std::vector<TarMember> members;
  while (auto member = reader.next()) members.push_back(*member);
  return members;
}

std::string error_of(const std::string& tar) {
  return message_of([&] { read_all(tar); });
}

std::string data_of(const std::string& tar, const TarMember& member) {
  return tar.substr(static_cast<std::size_t>(member.data), static_cast<std::size_t>(member.bytes));
}

std::string pax(const std::string& key, const std::string& value) {
  const std::string rest = " " + key + "=" + value + "\n";
  std::size_t length = rest.size() + 1;
  while (std::to_string(length).size() + rest.size() != length) ++length;
  return std::to_string(length) + rest;
}

std::string extended(char type, const std::string& data) {
  return tar_entry({.name = "extended", .type = type}, data);
}

constexpr const char* kTruncated = "\n  the shard is truncated: copy or write it again";
constexpr const char* kDamaged =
    "\n  the shard is damaged, or is not an uncompressed tar: copy or write it again";

// Writes members with libarchive, in its format `format`.
std::string archive_text(int format,
                         const std::vector<std::pair<std::string, std::string>>& members) {
  std::string text(1 << 22, '\0');
  std::size_t used = 0;
  archive* const writer = archive_write_new();
  archive_write_set_format(writer, format);
  REQUIRE(archive_write_open_memory(writer, text.data(), text.size(), &used) == ARCHIVE_OK);
  for (const auto& member : members) {
    archive_entry* const entry = archive_entry_new();
    archive_entry_set_pathname(entry, member.first.c_str());
    archive_entry_set_size(entry, static_cast<la_int64_t>(member.second.size()));
    archive_entry_set_filetype(entry, member.first.ends_with('/') ? AE_IFDIR : AE_IFREG);
    archive_entry_set_perm(entry, 0644);
    REQUIRE(archive_write_header(writer, entry) == ARCHIVE_OK);
    archive_write_data(writer, member.second.data(), member.second.size());
    archive_entry_free(entry);
  }
  archive_write_close(writer);
  archive_write_free(writer);
  text.resize(used);
  return text;
}

// Names and data of the regular files as libarchive reads them.
std::vector<std::pair<std::string, std::string>> archive_files(const std::string& tar) {
  std::vector<std::pair<std::string, std::string>> files;
  archive* const reader = archive_read_new();
  archive_read_support_format_tar(reader);
  REQUIRE(archive_read_open_memory(reader, tar.data(), tar.size()) == ARCHIVE_OK);
  archive_entry* entry = nullptr;
  while (archive_read_next_header(reader, &entry) == ARCHIVE_OK) {
    if (archive_entry_filetype(entry) != AE_IFREG) continue;
    std::string data(static_cast<std::size_t>(archive_entry_size(entry)), '\0');
    CHECK(archive_read_data(reader, data.data(), data.size()) ==
          static_cast<la_ssize_t>(data.size()));
    files.emplace_back(archive_entry_pathname(entry), data);
  }
  archive_read_free(reader);
  return files;
}

}  // namespace

TEST_CASE("a tar's members are read in order, with where they begin and where their bytes are") {
  const std::string tar = tar_member("a/1.png", std::string(700, 'p')) +
                          tar_member("a/1.cls", "3") + tar_member("empty", "") + tar_end();
  const auto members = read_all(tar);
  REQUIRE(members.size() == 3);
  CHECK(members[0].path == "a/1.png");
  CHECK(members[0].begin == 0);
  CHECK(members[0].data == 512);
  CHECK(members[0].bytes == 700);
  CHECK(members[1].begin == 512 + 1024);  // 700 bytes fill two blocks
  CHECK(data_of(tar, members[1]) == "3");
  CHECK(members[2].bytes == 0);
  CHECK(members[2].regular);
}

TEST_CASE("a reader may begin at any member and read no more than its headers") {
  const std::string tar = tar_member("one", "1") + extended('x', pax("path", "two")) +
                          tar_member("short", "22") + tar_end();
  const auto second = read_all(tar)[1];
  CHECK(second.begin == 1024);
  CHECK(second.data == 1024 + 3 * 512);
  const ReadAt bounded = [&](std::int64_t offset, std::span<std::byte> out) {
    CHECK(offset + static_cast<std::int64_t>(out.size()) <= second.data);
    reader_of(tar)(offset, out);
  };
  TarReader reader(kName, static_cast<std::int64_t>(tar.size()), bounded, second.begin,
                   second.data - second.begin);
  CHECK(reader.next()->path == "two");
}

TEST_CASE("ustar, GNU and pax tars of libarchive read as libarchive reads them") {
  std::mt19937 random(7);  // NOLINT(cert-msc51-cpp): the same tars every time
  for (const int format :
       {ARCHIVE_FORMAT_TAR_USTAR, ARCHIVE_FORMAT_TAR_GNUTAR, ARCHIVE_FORMAT_TAR_PAX_INTERCHANGE}) {
    CAPTURE(format);
    std::vector<std::pair<std::string, std::string>> written{{"folder/", ""}};
    for (int i = 0; i < 60; ++i) {
      std::string name = fmt::format("folder/{:03d}", i);
      if (i % 3 == 1) name = std::string(90, 'd') + "/" + name;  // needs ustar's prefix
      if (i % 3 == 2 && format != ARCHIVE_FORMAT_TAR_USTAR) name += std::string(300, 'n');
      written.emplace_back(name + ".png",
                           std::string(random() % 3000, static_cast<char>('a' + i % 26)));
    }
    const std::string tar = archive_text(format, written);
    for (const std::int64_t window : {512, 1536, 1 << 16}) {
      std::vector<std::pair<std::string, std::string>> files;
      for (const TarMember& member : read_all(tar, window)) {
        if (member.regular) files.emplace_back(member.path, data_of(tar, member));
      }
      CHECK(files.size() == 60);
      CHECK(files == archive_files(tar));
    }
  }
}

TEST_CASE("old headers, GNU numbers, pax sizes and global headers are understood") {
  const std::string base256 = std::string("\x80\0\0\0\0\0\0\0\0\0\0\x05", 12);
  const std::string tar = tar_entry({.name = "v7", .type = '\0', .magic = ""}, "1") +
                          tar_entry({.name = "gnu", .size = base256, .magic = "ustar  "}, "12345") +
                          extended('g', pax("comment", "path=wrong")) +
                          extended('x', pax("size", "4") + pax("path", "pax")) +
                          tar_entry({.name = "x", .size = "00000000000"}, "1234") +
                          tar_entry({.name = "name", .prefix = "prefix"}, "") + tar_end();
  const auto members = read_all(tar);
  REQUIRE(members.size() == 4);
  CHECK(data_of(tar, members[0]) == "1");
  CHECK(data_of(tar, members[1]) == "12345");
  CHECK(members[2].path == "pax");
  CHECK(data_of(tar, members[2]) == "1234");
  CHECK(members[3].path == "prefix/name");
}

TEST_CASE("a magic that is neither POSIX's nor GNU's is damage: readers make other names of it") {
  const std::string damaged =
      tar_entry({.name = "n.jpg", .magic = "ustar(00", .prefix = "folder"}, "") + tar_end();
  CHECK(error_of(damaged) ==
        std::string("a.tar: byte 0: its magic is neither POSIX's nor GNU's") + kDamaged);
}

TEST_CASE("links, folders, devices and FIFOs are no regular files and have no data") {
  std::string tar;
  for (const char type : {'1', '2', '3', '4', '5', '6'}) {
    tar += tar_header({.name = "special", .type = type, .size = "00000001000"}, 0);
  }
  tar += tar_entry({.name = "old_folder/", .type = '0'}, "") + tar_end();
  const auto members = read_all(tar);
  REQUIRE(members.size() == 7);
  for (const TarMember& member : members) CHECK(!member.regular);
}

TEST_CASE("a shard that was cut is an error wherever it was cut") {
  const std::string tar =
      tar_member("1.png", std::string(700, 'p')) + tar_member("1.cls", "3") + tar_end();
  CHECK(error_of("") == std::string("a.tar: byte 0: the file is empty") + kTruncated);
  CHECK(error_of(tar.substr(0, 300)) ==
        std::string("a.tar: byte 0: ends inside a header") + kTruncated);
  CHECK(error_of(tar.substr(0, 1000)) ==
        std::string("a.tar: byte 0: 1.png has 700 bytes, of which the file holds 488") +
            kTruncated);
  CHECK(error_of(tar.substr(0, 1536)) ==
        std::string("a.tar: byte 1536: ends without the two zero blocks that end a tar") +
            kTruncated);
  CHECK(error_of(tar.substr(0, tar.size() - 512)) ==
        std::string("a.tar: byte 2560: ends after one of the two zero blocks that end a tar") +
            kTruncated);
  // In the padding of the first member, and anywhere else: never a clean end.
  for (std::size_t bytes = 0; bytes < tar.size(); bytes += 100) {
    CAPTURE(bytes);
    CHECK(error_of(tar.substr(0, bytes)) != "nothing was thrown");
  }
}

TEST_CASE("damage in the middle of a shard is an error with its place") {
  const std::string one = tar_member("1.png", "p"), two = tar_member("1.cls", "3");
  std::string flipped = one + two + tar_end();
  flipped[1024 + 3] = static_cast<char>(flipped[1024 + 3] ^ 1);
  CHECK(error_of(flipped) ==
        std::string("a.tar: byte 1024: no tar header: its checksum is wrong") + kDamaged);
  CHECK(error_of(one + std::string(512, '\0') + two + tar_end()) ==
        std::string("a.tar: byte 1024: a zeroed header") + kDamaged);
  CHECK(error_of(one + tar_end() + two + tar_end()) ==
        "a.tar: byte 2048: data after the end marker at byte 1024\n"
        "  two archives were joined, and the second would be lost: write the shard again");
  CHECK(error_of(one + tar_end() + "tail") ==
        "a.tar: byte 2048: data after the end marker at byte 1024\n"
        "  two archives were joined, and the second would be lost: write the shard again");
  for (const auto& [begin, like] :
       {std::pair("\x1f\x8b", "; it begins like gzip, whose tars are named .tar.gz"),
        std::pair("\x28\xb5\x2f\xfd", "; it begins like zstd, whose tars are named .tar.zst"),
        std::pair("PK\x03\x04", "; it begins like a zip"),
        std::pair("PAR1", "; it begins like Parquet: scaletrain data import parquet"),
        std::pair("zzzz", "")}) {
    CHECK(error_of(begin + std::string(2000, 'z')) ==
          std::string("a.tar: byte 0: no tar header: its checksum is wrong") + like + kDamaged);
  }
}

TEST_CASE("a file that stands in for a shard is named") {
  CHECK(error_of("version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n") ==
        "a.tar: is a git-lfs pointer, not the file itself\n"
        "  fetch the file: git lfs pull, in the repository that it is from");
  CHECK(error_of("<!DOCTYPE html>" + std::string(2000, ' '))
            .starts_with("a.tar: is an HTML page, not the file itself"));
}

TEST_CASE("sizes that lie are refused before anything is allocated") {
  const std::string huge = "77777777777";  // 8 GiB - 1
  CHECK(error_of(tar_header({.name = "1.png", .size = huge}, 0) + tar_end()) ==
        std::string("a.tar: byte 0: 1.png has 8589934591 bytes; at most 67108864 are allowed") +
            kDamaged);
  const std::string negative(12, '\xff'), enormous = "\x80" + std::string(11, '\x7f');
  for (const std::string& size : {negative, enormous, std::string("12x")}) {
    CHECK(error_of(tar_header({.name = "1.png", .size = size}, 0) + tar_end()) ==
          std::string("a.tar: byte 0: its size field is not a number") + kDamaged);
  }
  CHECK(error_of(tar_header({.name = "x", .type = 'x', .size = huge}, 0) + tar_end()) ==
        std::string(
            "a.tar: byte 0: an extended header ('x') of 8589934591 bytes; at most 1048576 are "
            "allowed") +
            kDamaged);
  CHECK(error_of(tar_header({.name = "x", .type = 'L', .size = "00000010000"}, 0) + tar_end()) ==
        std::string("a.tar: byte 0: ends inside an extended header") + kTruncated);
}

TEST_CASE("damaged pax records and sparse files are refused") {
  const std::string file = tar_member("1.png", "p");
  for (const std::string& records :
       {std::string("5"), std::string("99 path=x\n"), std::string("9 path x\n"),
        std::string("10 path=xy"), std::string("3 =\n")}) {
    CAPTURE(records);
    CHECK(error_of(extended('x', records) + file + tar_end()) ==
          std::string("a.tar: byte 0: its pax extended header is damaged") + kDamaged);
  }
  CHECK(error_of(extended('x', pax("size", "-1")) + file + tar_end()) ==
        std::string("a.tar: byte 0: the size in its pax extended header is not a number") +
            kDamaged);
  CHECK(error_of(extended('x', pax("GNU.sparse.major", "1")) + file + tar_end()) ==
        "a.tar: byte 1024: 1.png is a sparse file\n  write the shard without sparse files");
  CHECK(error_of(tar_header({.name = "s", .type = 'S'}, 0) + tar_end()) ==
        "a.tar: byte 0: s is a sparse file\n  write the shard without sparse files");
  const std::string piece = std::string(386 - 345, '\0') + "1";  // in GNU's list, not a prefix
  CHECK(error_of(tar_entry({.name = "g", .magic = "ustar  ", .prefix = piece}, "p") + tar_end()) ==
        "a.tar: byte 0: g is a sparse file\n  write the shard without sparse files");
  CHECK(error_of(extended('x', pax("path", "x")) + tar_end()) ==
        std::string("a.tar: byte 1024: a zeroed header") + kDamaged);
}

TEST_CASE("names in messages are escaped and cut") {
  CHECK(shown_name("a\n\x1b[31m") == "a\\n\\x1b[31m");
  CHECK(shown_name(std::string(5000, 'a')) == std::string(120, 'a') + "...");
}

TEST_CASE("random damage never reads outside the file and never goes on for ever") {
  const std::string sound = tar_member("1.png", std::string(600, 'p')) +
                            extended('x', pax("path", "1.cls")) + tar_member("x", "3") +
                            extended('L', "long name") + tar_member("y", "4") + tar_end();
  std::mt19937 random(11);  // NOLINT(cert-msc51-cpp)
  int refused = 0;
  for (int i = 0; i < 3000; ++i) {
    std::string tar = sound;
    for (int change = 0; change < 3; ++change)
      tar[random() % tar.size()] = static_cast<char>(random());
    if (i % 2 == 0) tar.resize(random() % tar.size());
    const std::string text = error_of(tar);  // reader_of() checks the bounds
    CHECK(!text.starts_with("not a DataError"));
    refused += text == "nothing was thrown" ? 0 : 1;
  }
  CHECK(refused > 1500);  // at least the truncated half
}
