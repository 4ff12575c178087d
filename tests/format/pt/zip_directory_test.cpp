#include "lib/format/pt/zip_directory.h"

#include <doctest/doctest.h>

#include "lib/core/error.h"
#include "tests/format/pt/pt_support.h"
#include "tests/temporary_folder.h"

using namespace scaletrain;          // NOLINT(google-build-using-namespace)
using namespace scaletrain::format;  // NOLINT(google-build-using-namespace)

namespace {

std::vector<ZipEntry> entries_of(const std::string& bytes) {
  const test::TemporaryFolder folder;
  const ByteReader file(folder.write("a.pt", bytes));
  return read_zip_directory(file, "a.pt");
}

// What is wrong with an archive.
std::string zip_problem(const std::string& bytes) {
  try {
    entries_of(bytes);
  } catch (const core::CheckpointError& error) {
    CHECK(error.place() == "a.pt");
    CHECK(error.remedy() == kZipRemedy);
    return error.found();
  }
  return "nothing";
}

// Two entries, "x" with 3 bytes and "yy" with 2. The first header lies at 0, its contents at 31;
// the second at 34 and 66; the directory from 68 on has records of 47 and 48 bytes; the end lies at
// 163.
std::string small_zip() { return test::zip_of({{"x", "abc"}, {"yy", "de"}}); }
constexpr std::size_t kSecond = 34, kDirectory = 68, kSecondRecord = 115, kEnd = 163;

std::string with(std::size_t at, std::uint64_t number, std::size_t bytes) {
  return small_zip().replace(at, bytes, test::little_endian(number, bytes));
}

// An archive of one entry with records of 64 bits; `offset` as it says where its entry begins.
std::string wide_archive(std::uint64_t count, std::uint64_t locator, std::uint64_t offset) {
  using test::little_endian;
  const std::string none = little_endian(0xffffffff, 4);
  const std::string front = little_endian(45, 2) + little_endian(0, 12);
  const std::string local = "PK\x03\x04" + front + none + none + little_endian(1, 2) +
                            little_endian(20, 2) + "x" + little_endian(1, 2) +
                            little_endian(16, 2) + little_endian(3, 8) + little_endian(3, 8) +
                            "abc";
  const std::string record = "PK\x01\x02" + little_endian(45, 2) + front + none + none +
                             little_endian(1, 2) + little_endian(28, 2) + little_endian(0, 10) +
                             none + "x" + little_endian(1, 2) + little_endian(24, 2) +
                             little_endian(3, 8) + little_endian(3, 8) + little_endian(offset, 8);
  const std::string end64 = "PK\x06\x06" + little_endian(44, 8) + little_endian(45, 4) +
                            little_endian(0, 8) + little_endian(count, 8) +
                            little_endian(count, 8) + little_endian(record.size(), 8) +
                            little_endian(local.size(), 8);
  return local + record + end64 + "PK\x06\x07" + little_endian(0, 4) +
         little_endian(local.size() + record.size() + locator, 8) + little_endian(1, 4) +
         "PK\x05\x06" + little_endian(0, 4) + little_endian(0xffff, 2) + little_endian(0xffff, 2) +
         none + none + little_endian(0, 2);
}

}  // namespace

TEST_CASE("entries lie where their headers end") {
  const std::vector<ZipEntry> entries = entries_of(small_zip());
  REQUIRE(entries.size() == 2);
  CHECK(entries[0].name == "x");
  CHECK(entries[0].begin == 31);
  CHECK(entries[0].bytes == 3);
  CHECK(entries[0].crc32 == 0x352441c2);  // of "abc"
  CHECK(entries[0].is_stored);
  CHECK(entries[1].name == "yy");
  CHECK(entries[1].begin == 66);
  CHECK(entries[1].bytes == 2);
  CHECK(entries_of(test::zip_of({})).empty());
}

TEST_CASE("numbers of 64 bits are read from where they stand") {
  const std::vector<ZipEntry> entries = entries_of(wide_archive(1, 0, 0));
  REQUIRE(entries.size() == 1);
  CHECK(entries[0].begin == 51);  // 30 of the header, 1 of the name, 20 of the extra field
  CHECK(entries[0].bytes == 3);
  const std::string senseless = "has an end record of 64 bits that makes no sense";
  CHECK(zip_problem(wide_archive(1, 1, 0)) == senseless);
  CHECK(zip_problem(wide_archive(2, 0, 0)) ==
        "says that it has 2 entries in a directory of 75 bytes");
  CHECK(zip_problem(wide_archive(1, 0, 55)) == "entry \"x\" is not within the file");
  CHECK(zip_problem(wide_archive(1, 0, ~0ULL)) == "entry \"x\" is not within the file");
}

TEST_CASE("an entry that is compressed says so") {
  std::string packed = with(kDirectory + 10, 8, 2);
  packed.replace(8, 2, test::little_endian(8, 2));
  const std::vector<ZipEntry> entries = entries_of(packed);
  CHECK(!entries[0].is_stored);
  CHECK(entries[1].is_stored);
}

TEST_CASE("an archive that breaks a rule is refused") {
  struct Case {
    std::string bytes, problem;
  };
  const std::string cut =
      "does not end as a zip archive does: it is truncated or has data appended";
  const std::string outside = "entry \"yy\" is not within the file";
  const std::string other = "entry \"yy\" has another header than the directory says";
  for (const auto& [bytes, problem] : std::vector<Case>{
           {"", cut},
           {small_zip().substr(0, kEnd + 21), cut},
           {small_zip() + "x", cut},
           {with(kEnd + 20, 1, 2), cut},
           {with(kEnd + 4, 1, 2), "is a part of an archive"},
           {with(kEnd + 10, 1, 2), "its directory has 48 bytes too many"},
           {with(kEnd + 10, 3, 2), "says that it has 3 entries in a directory of 95 bytes"},
           {with(kEnd + 12, 94, 4),
            "says that its directory has 94 bytes from byte 68 on, where it ends at byte 163"},
           {with(kEnd + 16, 164, 4),
            "says that its directory has 95 bytes from byte 164 on, where it ends at byte 163"},
           {with(kSecondRecord, 0, 4), "has a directory that is truncated after 47 bytes"},
           {with(kSecondRecord + 28, 9, 2), "has a directory that is truncated in an entry"},
           {with(kSecondRecord + 8, 1, 2), "entry \"yy\" is encrypted"},
           {with(kSecondRecord + 8, 0x40, 2), "entry \"yy\" has the flags 0x40"},
           {with(kSecondRecord + 10, 8, 2), other},
           {with(kSecondRecord + 24, 3, 4),
            "entry \"yy\" is stored, and says it has 3 and 2 bytes"},
           {with(kSecondRecord + 34, 1, 2), "entry \"yy\" is on another disk"},
           {with(kSecondRecord + 42, 0xffffffff, 4), "entry \"yy\" has no size or position"},
           {with(kSecondRecord + 42, 69, 4), outside},
           {with(kSecondRecord + 42, 40, 4), outside},
           {with(kSecondRecord + 42, 33, 4), "entry \"yy\" overlaps another"},
           {with(kSecondRecord + 42, 0, 4), "entry \"yy\" overlaps another"},
           {with(kSecond, 0, 4), other},
           {with(kSecond + 30, 'z', 1), other},
           {with(kSecond + 28, 3, 2), outside},
           {test::zip_of({{"x", "1"}, {"x", "2"}}), "entry \"x\" occurs twice"}}) {
    CHECK(zip_problem(bytes) == problem);
  }
}
