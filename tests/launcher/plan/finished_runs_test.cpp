#include "launcher/plan/finished_runs.h"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "lib/core/log.h"
#include "tests/temporary_folder.h"

namespace scaletrain::launcher::finished_runs_test {

namespace fs = std::filesystem;

TEST_CASE("runs are listed once, the newest, without those that are scored or removed") {
  const test::TemporaryFolder folder;
  const fs::path file = folder.path / "state" / "finished_runs.jsonl";
  std::vector<std::string> runs;
  for (const char* const name : {"a", "b", "c", "d"}) {
    fs::create_directory(folder.path / name);
    runs.push_back((folder.path / name).string());
    note_finished_run(file, runs.back());
  }
  note_finished_run(file, runs[1]);
  note_finished_run(file, folder.path / "removed");
  std::ofstream(file, std::ios::app) << "{\"run\": \n[]\n{}\n";
  CHECK(unscored_runs(file, {}, 9) == runs);
  CHECK(unscored_runs(file, {}, 2) == std::vector<std::string>{runs[2], runs[3]});
  CHECK(unscored_runs(file, {{.run = runs[0], .device = "cpu"}}, 9) ==
        std::vector<std::string>{runs[1], runs[2], runs[3]});
}

TEST_CASE("only the user may read the list") {
  const test::TemporaryFolder folder;
  const fs::path file = folder.path / "finished_runs.jsonl";
  note_finished_run(file, folder.path);
  struct stat facts {};
  REQUIRE(::stat(file.c_str(), &facts) == 0);
  CHECK((facts.st_mode & 0777) == 0600);
}

TEST_CASE("a list that cannot be written is a warning") {
  const test::TemporaryFolder folder;
  std::ofstream(folder.path / "file") << "not a folder";
  std::string warning;
  core::set_warning_listener([&](const std::string& line) { warning = line; });
  note_finished_run(folder.path / "file" / "finished_runs.jsonl", folder.path);
  core::set_warning_listener({});
  CHECK(warning.find("`scaletrain plan scores` does not know this run") != std::string::npos);
}

TEST_CASE("no list is kept if the user switches it off, or has no home") {
  ::setenv("XDG_STATE_HOME", "/state", 1);
  CHECK(finished_runs_file() == "/state/scaletrain/finished_runs.jsonl");
  ::setenv("SCALETRAIN_PLAN_SCORES", "off", 1);
  CHECK(finished_runs_file().empty());
  ::unsetenv("SCALETRAIN_PLAN_SCORES");
  ::unsetenv("XDG_STATE_HOME");
  note_finished_run({}, "/anywhere");
}

}  // namespace scaletrain::launcher::finished_runs_test
