#include "lib/core/disk/disk.h"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "lib/core/disk/temporary_name.h"
#include "tests/temporary_folder.h"

namespace fs = std::filesystem;
using namespace scaletrain::core;  // NOLINT(google-build-using-namespace)

namespace {

std::string message_of(const auto& body) {
  try {
    body();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "nothing was thrown";
}

}  // namespace

TEST_CASE("write_durably replaces a file and leaves no temporary one") {
  const scaletrain::test::TemporaryFolder folder;
  const fs::path file = folder.path / "state.json";
  write_durably(system_disk(), file, "first");
  write_durably(system_disk(), file, "second");
  CHECK(read_file(file, 100, ExitCode::kData) == "second");
  CHECK(std::distance(fs::directory_iterator(folder.path), fs::directory_iterator()) == 1);
}

TEST_CASE("replace_link points an existing link elsewhere") {
  const scaletrain::test::TemporaryFolder folder;
  replace_link(system_disk(), "step-1", folder.path / "latest");
  replace_link(system_disk(), "step-2", folder.path / "latest");
  CHECK(fs::read_symlink(folder.path / "latest") == "step-2");
  CHECK(std::distance(fs::directory_iterator(folder.path), fs::directory_iterator()) == 1);
}

TEST_CASE("a folder below a link to nothing is refused with the link's name") {
  const scaletrain::test::TemporaryFolder folder;
  fs::create_symlink("absent", folder.path / "link");
  CHECK(message_of([&] { system_disk().make_folders(folder.path / "link" / "logs"); }) ==
        folder.file("link") +
            ": is a link to absent, which does not exist\n"
            "  make that folder, or remove the link");
  fs::create_directory(folder.path / "absent");
  system_disk().make_folders(folder.path / "link" / "logs");
  CHECK(fs::exists(folder.path / "absent" / "logs"));
}

TEST_CASE("a folder that is not there is named with errno") {
  CHECK(message_of([] { write_durably(system_disk(), "/nowhere/at/all", "x"); }) ==
        "/nowhere/at/" + temporary_name(".all") +
            ": cannot create: No such file or directory (ENOENT)\n"
            "  choose another folder or correct its permissions");
}

TEST_CASE("read_file refuses what is not a regular file, and what is too large") {
  const scaletrain::test::TemporaryFolder folder;
  const auto read = [](const fs::path& path) {
    return message_of([&] { read_file(path, 3, ExitCode::kUsage); });
  };
  CHECK(read(folder.path / "none") == (folder.path / "none").string() +
                                          ": cannot be read: No such file or directory (ENOENT)\n"
                                          "  check the path");
  CHECK(read(folder.path) == folder.path.string() +
                                 ": is not a regular file\n"
                                 "  name a file, not a folder or a device");
  ::mkfifo((folder.path / "fifo").c_str(), 0600);
  CHECK(read(folder.path / "fifo").find("is not a regular file") != std::string::npos);
  std::ofstream(folder.path / "four") << "abcd";
  CHECK(read(folder.path / "four") ==
        (folder.path / "four").string() + ": has 4 bytes\n  at most 3 bytes are read here");
}
