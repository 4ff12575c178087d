#include <doctest/doctest.h>

#include <algorithm>

#include "lib/recipe/load.h"
#include "tests/recipe/recipe_support.h"
#include "tests/temporary_folder.h"

namespace scaletrain::recipe {
namespace {

TEST_CASE(
    "key_origins tells the line of each key that somebody wrote, of a base or an override too") {
  const test::TemporaryFolder folder;
  const std::string base = folder.write("base.json", "{\n\"seed\": 3,\n\"steps\": 9}");
  const std::string file = folder.write(
      "r.json", "{\n\"extends\": \"base.json\",\n\"steps\": 10,\n\"optimizer\": {\n\"lr\": 1}}");
  const auto origins = key_origins(file, {"optimizer.lr=0.5", "data.threads=2"});
  CHECK(origins.at("/seed") == base + ":2");
  CHECK(origins.at("/steps") == file + ":3");
  CHECK(origins.at("/optimizer/lr") == "--set optimizer.lr");
  CHECK(origins.at("/data/threads") == "--set data.threads");
  CHECK_FALSE(origins.contains("/optimizer"));
  CHECK_FALSE(origins.contains("/batch/per_device"));
}

TEST_CASE("settable_keys are those of the reference, without those of a thing chosen by name") {
  const auto keys = settable_keys();
  const auto has = [&](const std::string& key) {
    return std::any_of(keys.begin(), keys.end(), [&](const auto& one) { return one.first == key; });
  };
  CHECK(has("optimizer.lr"));
  CHECK(has("data.train.shards"));
  CHECK(has("epochs"));
  CHECK_FALSE(has("optimizer"));
  const std::string reference = markdown_reference();
  for (const auto& [key, help] : keys) {
    CHECK(reference.find("| `" + key + "` |") != std::string::npos);
  }
}

}  // namespace
}  // namespace scaletrain::recipe
