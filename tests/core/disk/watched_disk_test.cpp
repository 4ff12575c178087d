#include "lib/core/disk/watched_disk.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <span>
#include <string>
#include <utility>

#include "tests/temporary_folder.h"

namespace core = scaletrain::core;

TEST_CASE("every operation of a save is reported, and does what the disk does") {
  const scaletrain::test::TemporaryFolder temporary;
  const std::filesystem::path& folder = temporary.path;
  int calls = 0;
  core::WatchedDisk disk(core::system_disk(), [&calls] { ++calls; });
  const auto watched = [&] { return std::exchange(calls, 0) == 1; };
  disk.make_folders(folder / "a");
  CHECK(watched());
  const auto file = disk.create(folder / "a/text", 4);
  CHECK(watched());
  file->write(std::as_bytes(std::span("text", 4)));
  CHECK(watched());
  file->sync();
  CHECK(watched());
  disk.rename(folder / "a/text", folder / "a/name");
  CHECK(watched());
  disk.make_link("name", folder / "a/link");
  CHECK(watched());
  disk.sync_folder(folder / "a");
  CHECK(watched());
  CHECK(core::read_file(folder / "a/link", 100, core::ExitCode::kData) == "text");
  CHECK(disk.free_bytes(folder) > 0);
  CHECK(watched());
  disk.remove_all(folder);
  CHECK(watched());
  CHECK(!std::filesystem::exists(folder));
}
