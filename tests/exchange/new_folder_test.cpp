#include "lib/exchange/new_folder.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "lib/core/disk/read_faults.h"
#include "lib/core/error.h"
#include "tests/temporary_folder.h"

using namespace scaletrain;  // NOLINT(google-build-using-namespace)
using exchange::publish_folder;

namespace {

void publish(const test::TemporaryFolder& folder, const std::string& out, bool replaces,
             const std::string& text) {
  core::Disk& disk = core::system_disk();
  publish_folder(disk, folder.file(out), replaces, [&](const std::filesystem::path& path) {
    core::write_durably(disk, path / "config.json", text);
  });
}

template <class Call>
std::string folder_refusal(const Call& call) {
  try {
    call();
  } catch (const core::UsageError& error) {
    return error.found() + "; " + error.remedy();
  }
  return "";
}

}  // namespace

TEST_CASE("a folder has its name when all files are in it") {
  const test::TemporaryFolder folder;
  publish(folder, "out/", false, "one");
  CHECK(folder.read("out/config.json") == "one");
  CHECK(core::names_in(folder.path) == std::vector<std::string>{"out"});
}

TEST_CASE("a failure in between leaves nothing behind") {
  const test::TemporaryFolder folder;
  CHECK_THROWS_AS(publish_folder(core::system_disk(), folder.file("out"), false,
                                 [&](const std::filesystem::path& path) {
                                   core::write_durably(core::system_disk(), path / "a", "a");
                                   throw core::StorageError("a", "disk full");
                                 }),
                  core::StorageError);
  CHECK(core::names_in(folder.path).empty());
}

TEST_CASE("an earlier export is replaced where that is asked for, and nothing else") {
  const test::TemporaryFolder folder;
  publish(folder, "out", false, "one");
  CHECK(folder_refusal([&] { publish(folder, "out", false, "two"); }) ==
        "exists already; replace it with --overwrite");
  CHECK(folder.read("out/config.json") == "one");
  publish(folder, "out", true, "two");
  CHECK(folder.read("out/config.json") == "two");
  CHECK(core::names_in(folder.path) == std::vector<std::string>{"out"});

  folder.write("out/thesis.tex", "mine");
  CHECK(folder_refusal([&] { publish(folder, "out", true, "three"); }) ==
        "has thesis.tex, which is not a file of an export; name a new folder");
  CHECK(folder.read("out/thesis.tex") == "mine");
  folder.write("file", "mine");
  CHECK(folder_refusal([&] { publish(folder, "file", true, "three"); }) ==
        "exists already and is not a folder; name a new one");
}
