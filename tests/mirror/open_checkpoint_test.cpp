#include "lib/mirror/open_checkpoint.h"

#include <doctest/doctest.h>

#include "lib/core/error.h"
#include "lib/format/checkpoint/checkpoint_folder_names.h"
#include "tests/format/checkpoint_support.h"

namespace scaletrain::mirror {

TEST_CASE("a checkpoint that is removed while it is read can be read to its end") {
  const test::TemporaryFolder run;
  const auto path = test::publish_sensible(run.path, 3);
  const std::string state = test::read_bytes(path / "state.json");
  const OpenCheckpoint checkpoint(path);
  std::filesystem::remove_all(path);
  std::string found(static_cast<std::size_t>(checkpoint.file("state.json").bytes()), '\0');
  checkpoint.file("state.json").read(0, std::as_writable_bytes(std::span(found)));
  CHECK((found == state));
  std::int64_t bytes = 0;
  for (const auto& [name, entry] : checkpoint.manifest().files) bytes += entry.bytes;
  CHECK(checkpoint.bytes() == bytes);
  CHECK(checkpoint.manifest().step == 3);
}

TEST_CASE("a checkpoint with a cut file or another checksum is refused") {
  const test::TemporaryFolder run;
  const auto path = test::publish_sensible(run.path, 3);
  const OpenCheckpoint checkpoint(path);
  const std::string state = test::read_bytes(path / "state.json");
  std::string found;
  const auto take = [&](std::span<const std::byte> piece) {
    found.append(reinterpret_cast<const char*>(piece.data()), piece.size());
  };
  checkpoint.read("state.json", take);
  CHECK((found == state));
  std::string other = state;
  other.back() = '!';
  test::write_bytes(path / "state.json", other);
  const std::string sum = checkpoint.manifest().files.at("state.json").sum;
  CHECK(test::message_of<core::CheckpointError>([&] { checkpoint.read("state.json", take); }) ==
        (path / "state.json").string() + ": has the XXH3-128 " +
            format::sum_up(other, format::Sum::kXxh3).sum + ", its manifest says " + sum + "\n  " +
            format::kOtherCheckpoint);
  test::write_bytes(path / "state.json", "{}");
  CHECK(test::message_of<core::CheckpointError>([&] {
          const OpenCheckpoint cut(path);
        }).starts_with((path / "state.json").string() + ": has 2 bytes, its manifest says "));
}

}  // namespace scaletrain::mirror
