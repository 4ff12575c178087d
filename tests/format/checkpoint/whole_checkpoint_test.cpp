#include "lib/format/checkpoint/whole_checkpoint.h"

#include <doctest/doctest.h>

#include "lib/core/error.h"
#include "tests/format/cut_support.h"

namespace fs = std::filesystem;
using namespace scaletrain;          // NOLINT(google-build-using-namespace)
using namespace scaletrain::format;  // NOLINT(google-build-using-namespace)

TEST_CASE("pieces become the files that one writer would have written, byte for byte") {
  const test::TemporaryFolder run, other;
  const fs::path cut = test::publish_cut(run.path, test::Sensible(20), 20);
  const fs::path whole = test::publish_sensible(other.path, 20);
  const fs::path joined = run.path / "joined";
  fs::create_directory(joined);
  write_whole(core::system_disk(), cut, joined);
  CHECK_NOTHROW(check_checkpoint(joined));
  for (const auto& entry : fs::directory_iterator(whole)) {
    const fs::path name = entry.path().filename();
    CAPTURE(name);
    CHECK(test::read_bytes(joined / name) == test::read_bytes(whole / name));
  }
  CHECK(read_manifest(joined).files.size() == read_manifest(whole).files.size());
}

TEST_CASE("what was whole stays what it is, and what changed under the copy is refused") {
  const test::TemporaryFolder run;
  const fs::path whole = test::publish_sensible(run.path, 20);
  fs::create_directory(run.path / "again");
  write_whole(core::system_disk(), whole, run.path / "again");
  CHECK(test::read_bytes(run.path / "again/manifest.json") ==
        test::read_bytes(whole / "manifest.json"));
  test::write_bytes(whole / "classes.json", "[]");
  fs::create_directory(run.path / "third");
  CHECK(test::message_of<core::CheckpointError>([&] {
          write_whole(core::system_disk(), whole, run.path / "third");
        }).starts_with((whole / "classes.json").string() + ": has the XXH3-128 "));
}
