#include "lib/observe/environment.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "lib/core/clock.h"
#include "tests/observe/observe_support.h"
#include "tests/temporary_folder.h"

namespace scaletrain::observe {

namespace {

nlohmann::json environment_of(std::vector<std::string> command) {
  EnvironmentFacts facts;
  facts.command = std::move(command);
  return nlohmann::json::parse(environment_json(facts));
}

constexpr const char* kCommit = "0123456789abcdef0123456789abcdef01234567";

}  // namespace

TEST_CASE("environment.json holds what the program says and what the machine is") {
  const double before = core::unix_time();
  const std::string text = environment_json({.versions = {{"scaletrain", "0.1.0"}},
                                             .devices = {"cpu", "cpu"},
                                             .world_size = 2,
                                             .command = {"scaletrain", "launch"}});
  CHECK(text.back() == '\n');
  const auto json = nlohmann::json::parse(text);
  CHECK(json["time"].get<double>() >= before);
  CHECK(json["versions"] == nlohmann::json{{"scaletrain", "0.1.0"}});
  CHECK(json["devices"] == nlohmann::json{"cpu", "cpu"});
  CHECK(json["world_size"] == 2);
  CHECK(json["command"] == nlohmann::json{"scaletrain", "launch"});
  CHECK(json["working_directory"] == std::filesystem::current_path().string());
  CHECK(json["cores"].get<int>() >= 1);
  CHECK(json["memory_bytes"].get<std::int64_t>() > (1 << 20));
  CHECK(json["host"].get<std::string>() != "");
  CHECK(json["kernel"].get<std::string>() != "");
  CHECK(json.contains("cpu"));
  CHECK(json.contains("git_commit"));
}

TEST_CASE("variables that change how a run computes are kept, secrets and all others are not") {
  setenv("OMP_NUM_THREADS", "3", 1);
  setenv("SLURM_JWT", "canary", 1);
  setenv("NCCL_PROXY", "http://me:canary@host", 1);
  setenv("OBSERVE_TEST_OTHER", "canary", 1);
  const std::string text = environment_json({});
  CHECK(text.find("canary") == std::string::npos);
  const auto variables = nlohmann::json::parse(text)["variables"];
  CHECK(variables["OMP_NUM_THREADS"] == "3");
  CHECK(variables["NCCL_PROXY"] == "http://***@host");
  for (const char* name : {"OMP_NUM_THREADS", "SLURM_JWT", "NCCL_PROXY", "OBSERVE_TEST_OTHER"}) {
    unsetenv(name);
  }
}

TEST_CASE("a secret on the command line is hidden in each of its forms") {
  const auto json =
      environment_of({"train.py", "--token", "canary", "--api-key=canary", "--set",
                      "storage.secret=canary", "--lr", "0.1", "s3://me:canary@bucket"});
  CHECK(json["command"] == nlohmann::json{"train.py", "--token", "***", "--api-key=***", "--set",
                                          "storage.secret=***", "--lr", "0.1", "s3://***@bucket"});
}

TEST_CASE("bytes that are not UTF-8 do not break the file") {
  const auto json = environment_of({"caf\xe9"});
  CHECK(json["command"][0] == "caf\xef\xbf\xbd");
}

TEST_CASE("the command line of a process is read with its empty arguments") {
  const std::vector<std::string> own = command_line(getpid());
  REQUIRE(!own.empty());
  CHECK(own[0].find("test_observe") != std::string::npos);
  CHECK(command_line(0).empty());  // no process has the number 0
}

TEST_CASE("the commit of a branch is found from a folder inside the repository") {
  const test::TemporaryFolder folder;
  write_text(folder.path / ".git/HEAD", "ref: refs/heads/main\n");
  write_text(folder.path / ".git/refs/heads/main", std::string(kCommit) + "\n");
  std::filesystem::create_directories(folder.path / "a/b");
  CHECK(git_commit(folder.path / "a/b") == kCommit);
}

TEST_CASE("the commit of a detached head, of a packed branch and of a worktree is found") {
  const test::TemporaryFolder folder;
  const auto git = folder.path / ".git";
  write_text(git / "HEAD", std::string(kCommit) + "\n");
  CHECK(git_commit(folder.path) == kCommit);

  write_text(git / "HEAD", "ref: refs/heads/main\n");
  write_text(git / "packed-refs", "# pack-refs with: peeled\n" + std::string(40, 'a') +
                                      " refs/heads/mainline\n" + kCommit + " refs/heads/main\n");
  CHECK(git_commit(folder.path) == kCommit);

  write_text(folder.path / "tree/.git", "gitdir: ../.git/worktrees/tree\n");
  write_text(git / "worktrees/tree/HEAD", "ref: refs/heads/main\n");
  write_text(git / "worktrees/tree/commondir", "../..\n");
  CHECK(git_commit(folder.path / "tree") == kCommit);
}

TEST_CASE("a repository without a commit, or a damaged one, has none") {
  const test::TemporaryFolder folder;
  std::filesystem::create_directories(folder.path / ".git");
  CHECK(git_commit(folder.path).empty());
  write_text(folder.path / ".git/HEAD", "ref: refs/heads/main\n");
  CHECK(git_commit(folder.path).empty());
  write_text(folder.path / ".git/HEAD", "not a commit\n");
  CHECK(git_commit(folder.path).empty());
}

}  // namespace scaletrain::observe
