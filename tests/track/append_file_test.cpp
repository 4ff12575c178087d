#include "lib/track/append_file.h"

#include <doctest/doctest.h>

#include <filesystem>

#include "lib/core/error.h"
#include "tests/temporary_folder.h"

namespace scaletrain::track {

TEST_CASE("blocks are appended to an empty file in a new folder") {
  const test::TemporaryFolder folder;
  folder.write("export/a.csv", "of an earlier run");
  AppendFile file(folder.path / "export" / "a.csv");
  file.append("one\n");
  file.append("two\n");
  CHECK(folder.read("export/a.csv") == "one\ntwo\n");
}

TEST_CASE("replaced contents are continued") {
  const test::TemporaryFolder folder;
  AppendFile file(folder.path / "a.csv");
  file.append("old\n");
  file.replace("new\n");
  file.append("more\n");
  CHECK(folder.read("a.csv") == "new\nmore\n");
}

TEST_CASE("a folder that cannot be made and a file that was removed are errors") {
  const test::TemporaryFolder folder;
  folder.write("plain", "");
  CHECK_THROWS_AS(AppendFile(folder.path / "plain" / "a.csv"), core::StorageError);
  AppendFile file(folder.path / "a.csv");
  std::filesystem::remove(file.path());
  CHECK_THROWS_AS(file.append("one\n"), core::StorageError);
}

}  // namespace scaletrain::track
