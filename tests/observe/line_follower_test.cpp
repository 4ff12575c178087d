#include "lib/observe/line_follower.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <vector>

#include "tests/temporary_folder.h"

namespace scaletrain::observe {
namespace {

struct Followed : test::TemporaryFolder {
  // The steps of the records that were added since the last call.
  std::vector<int> read_steps() {
    std::vector<int> steps;
    follower.read(
        [this] { ++times_begun_again; },
        [&](const nlohmann::ordered_json& record) { steps.push_back(record.at("step")); });
    return steps;
  }

  LineFollower follower{path / "metrics.jsonl"};
  int times_begun_again = 0;
};

using Steps = std::vector<int>;

}  // namespace

TEST_CASE("a file that does not exist yet has no records") {
  Followed run;
  CHECK(run.read_steps().empty());
  run.write("metrics.jsonl", "{\"step\":1}\n");
  CHECK(run.read_steps() == Steps{1});
}

TEST_CASE("each complete line is read once, and lines that do not parse are skipped") {
  Followed run;
  run.write("metrics.jsonl", "{\"step\":1}\ntorn\n7\n{\"step\":2}\n{\"st");
  CHECK(run.read_steps() == Steps{1, 2});
  CHECK(run.read_steps().empty());
  run.write("metrics.jsonl", "{\"step\":1}\ntorn\n7\n{\"step\":2}\n{\"step\":3}\n");
  CHECK(run.read_steps() == Steps{3});
  CHECK(run.times_begun_again == 0);
}

TEST_CASE("a file that became shorter is read from its beginning") {
  Followed run;
  run.write("metrics.jsonl", "{\"step\":1}\n{\"step\":2}\n");
  CHECK(run.read_steps() == Steps{1, 2});
  run.write("metrics.jsonl", "{\"step\":5}\n");
  CHECK(run.read_steps() == Steps{5});
  CHECK(run.times_begun_again == 1);
}

TEST_CASE("a file is followed from a byte on, and as many records are read as are asked for") {
  const test::TemporaryFolder folder;
  const std::string path = folder.write("a.jsonl", "{\"step\":1}\n{\"step\":2}\n{\"step\":3}\n");
  LineFollower follower(path, 11);
  Steps steps;
  const auto read = [&](std::size_t most) {
    follower.read([] {}, [&](const auto& record) { steps.push_back(record.at("step")); }, most);
  };
  read(1);
  CHECK(steps == Steps{2});
  CHECK(follower.offset() == 22);
  read(5);
  CHECK(steps == Steps{2, 3});
}

}  // namespace scaletrain::observe
