#include "lib/format/checkpoint/checkpoint_folder_copy.h"

#include <doctest/doctest.h>

#include <filesystem>

#include "lib/core/error.h"
#include "tests/format/checkpoint_support.h"

namespace fs = std::filesystem;
using namespace scaletrain;  // NOLINT(google-build-using-namespace)

TEST_CASE("a copy is published when all of it is there, and removed where it is no checkpoint") {
  const test::TemporaryFolder there, here;
  const test::Sensible sensible(4);
  const fs::path from = format::publish_checkpoint(
      core::system_disk(), there.path, {.program = "test", .step = 4}, 1000,
      [&](const fs::path& folder) { return sensible.write(core::system_disk(), folder); });
  const format::Manifest manifest = format::read_manifest(from);
  std::size_t fetched = 0;
  const auto fetch = [&](const std::string& name, const fs::path& to) {
    fs::copy_file(from / name, to);
    ++fetched;
  };
  CHECK_THROWS_AS(format::publish_copy(core::system_disk(), here.path, manifest,
                                       [&](const std::string& name, const fs::path& to) {
                                         fetch(name, to);
                                         if (name == "state.json") fs::resize_file(to, 10);
                                       }),
                  core::CheckpointError);
  CHECK(fs::is_empty(here.path));
  CHECK_THROWS_AS(format::publish_copy(core::system_disk(), here.path, manifest,
                                       [](const std::string& name, const fs::path& /*to*/) {
                                         throw core::CheckpointError(name, "is gone");
                                       }),
                  core::CheckpointError);
  CHECK(fs::is_empty(here.path));

  fetched = 0;
  const fs::path copy = format::publish_copy(core::system_disk(), here.path, manifest, fetch);
  CHECK(copy == here.path / "step-00000004");
  CHECK(fetched == manifest.files.size());
  CHECK_NOTHROW(format::check_checkpoint(copy));
}
