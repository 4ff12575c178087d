#include "launcher/commands/runs/run_differences.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "lib/core/disk/disk.h"
#include "lib/format/hashed_file.h"
#include "tests/temporary_folder.h"

namespace scaletrain::launcher {
namespace {

std::string no_sum(const DataFile& /*file*/) { return ""; }

DataFile shard() {
  return {.set = "train",
          .path = "/data/a.tar",
          .files = 1,
          .bytes = 100,
          .modified_ns = 7,
          .listing = ""};
}

std::vector<std::string> names_of(const std::vector<RunDifference>& differences) {
  std::vector<std::string> names;
  for (const RunDifference& one : differences) names.push_back(one.name);
  return names;
}

}  // namespace

TEST_CASE("equal data files do not differ") {
  CHECK(data_differences({shard()}, {shard()}, no_sum).empty());
}

TEST_CASE("a file of another size, a missing and a new one are certain differences") {
  DataFile larger = shard();
  larger.bytes = 101;
  DataFile other = shard();
  other.path = "/data/b.tar";
  const auto size = data_differences({shard()}, {larger}, no_sum);
  REQUIRE(size.size() == 1);
  CHECK(size[0].name == "data train /data/a.tar");
  CHECK(size[0].then == "100 bytes");
  CHECK(size[0].now == "101 bytes");
  CHECK(size[0].is_certain);
  const auto moved = data_differences({shard()}, {other}, no_sum);
  CHECK(names_of(moved) ==
        std::vector<std::string>{"data train /data/a.tar", "data train /data/b.tar"});
  CHECK(moved[0].now == "-");
  CHECK(moved[1].then == "-");
}

TEST_CASE("an image folder with other names or sizes differs") {
  DataFile folder = shard(), renamed = shard();
  folder.listing = "aa";
  renamed.listing = "bb";
  const auto found = data_differences({folder}, {renamed}, no_sum);
  REQUIRE(found.size() == 1);
  CHECK(found[0].is_certain);
}

TEST_CASE("a file that was written again is hashed if its SHA-256 is recorded") {
  const test::TemporaryFolder folder;
  const auto path = folder.path / "a.tar";
  core::write_durably(core::system_disk(), path, "samples");
  DataFile then = shard();
  then.path = path.string();
  DataFile now = then;
  now.modified_ns = 8;
  const auto perhaps = data_differences({then}, {now}, no_sum);
  REQUIRE(perhaps.size() == 1);
  CHECK(!perhaps[0].is_certain);
  const std::string sum = format::sha256_of(path);
  CHECK(data_differences({then}, {now}, [&](const DataFile&) { return sum; }).empty());
  const auto changed =
      data_differences({then}, {now}, [](const DataFile&) { return std::string("00"); });
  REQUIRE(changed.size() == 1);
  CHECK(changed[0].is_certain);
  CHECK(changed[0].now == "SHA-256 " + sum);
}

TEST_CASE("fields of the environment are compared by name, also missing ones") {
  const RunJson then{{"versions", {{"torch", "2.11.0"}}}, {"cpu", "a"}};
  const RunJson now{{"versions", {{"torch", "2.12.0"}}}, {"cpu", "a"}, {"git_commit", "11"}};
  const auto found = environment_differences(then, now, {"versions/torch", "cpu", "git_commit"});
  CHECK(names_of(found) == std::vector<std::string>{"versions/torch", "git_commit"});
  CHECK(found[0].then == "2.11.0");
  CHECK(found[1].then == "-");
}

TEST_CASE("variables that compute are set again, but not those that select a device or a job") {
  const RunJson environment{{"variables",
                             {{"OMP_NUM_THREADS", "1"},
                              {"NCCL_ALGO", "Ring"},
                              {"CUDA_VISIBLE_DEVICES", "3"},
                              {"SLURM_JOB_ID", "17"}}}};
  const auto found = computing_variables(environment);
  REQUIRE(found.size() == 2);
  CHECK(found[0] == std::pair<std::string, std::string>("OMP_NUM_THREADS", "1"));
  CHECK(found[1].first == "NCCL_ALGO");
}

}  // namespace scaletrain::launcher
