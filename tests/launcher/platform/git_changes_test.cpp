#include "launcher/platform/git_changes.h"

#include <doctest/doctest.h>

#include <chrono>
#include <string>
#include <vector>

#include "launcher/platform/captured.h"
#include "lib/core/disk/disk.h"
#include "tests/temporary_folder.h"

namespace scaletrain::launcher {
namespace {

void git(const std::filesystem::path& folder, std::vector<std::string> words) {
  std::vector<std::string> arguments{
      core::find_program("git").value(), "-C", folder.string(), "-c", "user.name=test", "-c",
      "user.email=test@example.org"};
  arguments.insert(arguments.end(), words.begin(), words.end());
  REQUIRE(run_captured({.arguments = arguments, .variables = {}}, std::chrono::minutes(1)).ok());
}

}  // namespace

TEST_CASE("changes of tracked files are returned as a diff") {
  const test::TemporaryFolder folder;
  const std::atomic<bool> never{false};
  CHECK(git_changes(folder.path, never).empty());  // no repository
  git(folder.path, {"init", "--quiet"});
  core::write_durably(core::system_disk(), folder.path / "model.txt", "old\n");
  git(folder.path, {"add", "model.txt"});
  git(folder.path, {"commit", "--quiet", "-m", "first"});
  CHECK(git_changes(folder.path, never).empty());
  core::write_durably(core::system_disk(), folder.path / "model.txt", "new\n");
  core::write_durably(core::system_disk(), folder.path / "untracked.txt", "other\n");
  const std::string changes = git_changes(folder.path, never);
  CHECK(changes.find("-old\n+new\n") != std::string::npos);
  CHECK(changes.find("untracked") == std::string::npos);
  const std::atomic<bool> stop{true};
  CHECK(git_changes(folder.path, stop).empty());
}

}  // namespace scaletrain::launcher
