#include "lib/train/beating_disk.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <span>
#include <string>
#include <utility>

#include "tests/temporary_folder.h"

using scaletrain::core::Beat;
using scaletrain::core::BeatReader;
using scaletrain::core::Phase;
using scaletrain::train::BeatingDisk;
namespace core = scaletrain::core;

TEST_CASE("every operation of a save is a beat, and does what the disk does") {
  const scaletrain::test::TemporaryFolder temporary;
  const std::filesystem::path& folder = temporary.path;
  const auto page = core::make_beat_file();
  const BeatReader reader(page.get());
  BeatingDisk disk(core::system_disk(), Beat(page.get()));
  auto before = reader.state().count;
  const auto beaten = [&] {
    const auto count = reader.state().count;
    return std::exchange(before, count) < count && reader.state().phase == Phase::kSaving;
  };
  disk.make_folders(folder / "a");
  CHECK(beaten());
  const auto file = disk.create(folder / "a/text", 4);
  CHECK(beaten());
  file->write(std::as_bytes(std::span("text", 4)));
  CHECK(beaten());
  file->sync();
  CHECK(beaten());
  disk.rename(folder / "a/text", folder / "a/name");
  CHECK(beaten());
  disk.make_link("name", folder / "a/link");
  CHECK(beaten());
  disk.sync_folder(folder / "a");
  CHECK(beaten());
  CHECK(core::read_file(folder / "a/link", 100, core::ExitCode::kData) == "text");
  CHECK(disk.free_bytes(folder) > 0);
  CHECK(beaten());
  disk.remove_all(folder);
  CHECK(beaten());
  CHECK(!std::filesystem::exists(folder));
}
