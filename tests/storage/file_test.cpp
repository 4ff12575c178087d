#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <thread>
#include <vector>

#include "lib/storage/storage.h"
#include "tests/format/tar/tar_support.h"
#include "tests/temporary_folder.h"

using namespace scaletrain::storage;  // NOLINT(google-build-using-namespace)
using scaletrain::format::message_of;
using scaletrain::test::TemporaryFolder;

namespace {

std::string read(const Object& object, std::int64_t offset, std::size_t bytes) {
  std::string text(bytes, '\0');
  object.read(offset, std::as_writable_bytes(std::span(text)));
  return text;
}

}  // namespace

TEST_CASE("a range of a file is read") {
  const TemporaryFolder folder;
  const auto object = file_storage().open(folder.write("a", "0123456789"));
  CHECK(object->identity().bytes == 10);
  CHECK(read(*object, 3, 4) == "3456");
  CHECK(read(*object, 10, 0).empty());
}

TEST_CASE("a range past the end is an error with both places") {
  const TemporaryFolder folder;
  const std::string path = folder.write("a", "0123456789");
  const auto object = file_storage().open(path);
  CHECK(message_of([&] { read(*object, 8, 4); }) ==
        path +
            ": ends at byte 10 while bytes 8 to 12 are read\n"
            "  the file is truncated, or was cut while it was read");
}

TEST_CASE("an object that is not there, or is no file, is a data error") {
  const TemporaryFolder folder;
  const auto error_of = [](const std::string& path) {
    return message_of([&] { file_storage().open(path); });
  };
  CHECK(error_of(folder.file("absent")) ==
        folder.file("absent") + ": No such file or directory (ENOENT)\n  check the path");
  CHECK(error_of(folder.path.string()) ==
        folder.path.string() + ": not a regular file\n  check the path");
  REQUIRE(::mkfifo(folder.file("fifo").c_str(), 0600) == 0);
  CHECK(error_of(folder.file("fifo")) ==  // and does not wait for a writer
        folder.file("fifo") + ": not a regular file\n  check the path");
}

TEST_CASE("a small file is absent only where nothing is there") {
  const TemporaryFolder folder;
  const std::string path = folder.write("a", "text");
  CHECK(read_if_there(file_storage(), path, 4) == "text");
  CHECK(read_if_there(file_storage(), folder.path / "b", 4) == std::nullopt);
  CHECK(read_if_there(file_storage(), path + "/b", 4) == std::nullopt);
  CHECK(message_of([&] { read_if_there(file_storage(), folder.path, 4); }) ==
        folder.path.string() + ": not a regular file\n  check the path");
  CHECK(message_of([&] { read_if_there(file_storage(), path, 3); }) ==
        path + ": has 4 bytes\n  at most 3 bytes are read here");
}

TEST_CASE("the identity tells a changed file") {
  const TemporaryFolder folder;
  const std::string path = folder.write("a", "one");
  const Identity before = file_storage().open(path)->identity();
  const timespec times[2] = {{5, 7}, {5, 7}};  // NOLINT(modernize-avoid-c-arrays): the call's
  REQUIRE(::utimensat(AT_FDCWD, path.c_str(), &times[0], 0) == 0);
  const Identity after = file_storage().open(path)->identity();
  CHECK(after.mtime_ns == 5'000'000'007);
  CHECK(before != after);
}

TEST_CASE("a listing is sorted bytewise and tells folders, through links too") {
  const TemporaryFolder folder;
  folder.write("b", "");
  folder.write("B", "");
  folder.write("\xc3\xa4", "");
  folder.write("c/x", "");
  std::filesystem::create_directory_symlink(folder.path / "c", folder.path / "link");
  std::string text;
  for (const auto& entry : file_storage().list(folder.path.string())) {
    text += entry.name + (entry.folder ? "/ " : " ");
  }
  CHECK(text == "B b c/ link/ \xc3\xa4 ");
  CHECK(message_of([&] { file_storage().list(folder.file("absent")); }) ==
        folder.file("absent") + ": No such file or directory (ENOENT)\n  check the path");
}

TEST_CASE("exactly one of many writers of an absent object wins, and no temporary file is left") {
  const TemporaryFolder folder;
  const std::string path = folder.file("winner");
  std::atomic<int> won = 0;
  std::atomic<char> winner = 0;
  std::vector<std::thread> threads;
  for (char c = 'a'; c < 'i'; ++c) {
    threads.emplace_back([&, c] {
      if (!file_storage().write_if_absent(path, std::string(1000, c))) return;
      ++won;
      winner = c;
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(won == 1);
  CHECK(folder.read("winner") == std::string(1000, winner));
  CHECK(file_storage().list(folder.path.string()).size() == 1);
  file_storage().write(path, "replaced");
  CHECK(folder.read("winner") == "replaced");
}
