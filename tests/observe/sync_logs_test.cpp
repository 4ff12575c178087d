#include "lib/observe/sync_logs.h"

#include <doctest/doctest.h>

#include <filesystem>

#include "tests/observe/observe_support.h"
#include "tests/temporary_folder.h"

namespace scaletrain::observe {
namespace {

TEST_CASE("the logs that are there are synced, and each that cannot be is counted") {
  const test::TemporaryFolder folder;
  core::Housekeeping housekeeping;
  sync_logs(folder.path, housekeeping);
  CHECK(housekeeping.failures() == 0);
  write_text(folder.path / "metrics.jsonl", "{}\n");
  sync_logs(folder.path, housekeeping);
  CHECK(housekeeping.failures() == 0);
  std::filesystem::create_symlink("/dev/null", folder.path / "console.log");  // fsync: EINVAL
  sync_logs(folder.path, housekeeping);
  CHECK(housekeeping.failures() == 1);
  CHECK(read_text(folder.path / "metrics.jsonl") == "{}\n");
}

}  // namespace
}  // namespace scaletrain::observe
