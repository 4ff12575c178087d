#include "launcher/commands/shell/run_paths.h"

#include <doctest/doctest.h>

#include <filesystem>

#include "tests/temporary_folder.h"

namespace scaletrain::launcher {
namespace {

TEST_CASE("run folders beside what is typed, and the checkpoints in one") {
  const test::TemporaryFolder folder;
  const std::string runs = (folder.path / "runs").string();
  std::filesystem::create_directories(runs + "/digits/checkpoints/step-00000004");
  std::filesystem::create_directories(runs + "/digits/checkpoints/latest");
  std::filesystem::create_directories(runs + "/gpt/checkpoints");
  std::filesystem::create_directories(runs + "/no-run");
  using Paths = std::vector<std::string>;
  CHECK(run_paths(runs + "/", false) == Paths{runs + "/digits", runs + "/gpt"});
  CHECK(run_paths(runs + "/d", true) == Paths{runs + "/digits"});
  CHECK(run_paths(runs + "/digits/", false).empty());
  const std::string checkpoints = runs + "/digits/checkpoints/";
  CHECK(run_paths(runs + "/digits/", true) ==
        Paths{checkpoints + "latest", checkpoints + "step-00000004"});
  CHECK(run_paths(checkpoints + "s", true) == Paths{checkpoints + "step-00000004"});
  CHECK(run_paths(runs + "/absent/", true).empty());
}

}  // namespace
}  // namespace scaletrain::launcher
