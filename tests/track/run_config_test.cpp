#include "lib/track/run_config.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "tests/temporary_folder.h"
#include "tests/track/records.h"

namespace scaletrain::track {

TEST_CASE("the key of a run is decided by its name and its first record") {
  const std::string key = run_key("run", train_record(1, 2));
  CHECK(key == "00000064157c138f");  // Python: zlib.crc32(b"run 100.5")
  CHECK(key == run_key("run", train_record(3, 4)));
  CHECK(key != run_key("other", train_record(1, 2)));
}

TEST_CASE("the recipe of a run has no secrets of URLs") {
  const test::TemporaryFolder folder;
  CHECK(run_recipe(folder.path).dump() == "{}");
  folder.write("recipe.json", R"({"steps": 8, "shards": ["https://me:word@host/a.tar?sig=1"]})");
  CHECK(run_recipe(folder.path).dump() == R"({"steps":8,"shards":["https://***@host/a.tar?***"]})");
}

TEST_CASE("nested keys are joined by dots, and lists are JSON") {
  const auto object = nlohmann::ordered_json::parse(
      R"({"seed": 7, "optimizer": {"name": "adamw", "lr": 0.001}, "to": ["csv", "wandb"]})");
  CHECK(flat_texts(object) == std::map<std::string, std::string>{{"seed", "7"},
                                                                 {"optimizer.name", "adamw"},
                                                                 {"optimizer.lr", "0.001"},
                                                                 {"to", R"(["csv","wandb"])"}});
}

TEST_CASE("a run has finished, failed or was stopped") {
  const test::TemporaryFolder folder;
  CHECK(run_end(folder.path) == RunEnd::kStopped);
  folder.write("failure.json", "{}");
  CHECK(run_end(folder.path) == RunEnd::kFailed);
  folder.write("finished.json", "{}");
  CHECK(run_end(folder.path) == RunEnd::kFinished);
}

}  // namespace scaletrain::track
