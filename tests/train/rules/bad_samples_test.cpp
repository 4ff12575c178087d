#include "lib/train/rules/bad_samples.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "lib/core/error.h"
#include "lib/recipe/recipe.h"
#include "tests/temporary_folder.h"

using scaletrain::data::BadSample;
using scaletrain::train::BadSamples;
namespace core = scaletrain::core;
namespace fs = std::filesystem;

namespace {

struct Run {
  scaletrain::test::TemporaryFolder folder;
  Run() {
    recipe.output = folder.path;
    recipe.data.bad_samples.max_rate = 0.01;
  }

  std::vector<nlohmann::json> lines(int rank) const {
    std::ifstream file(fs::path(recipe.output) / "bad_samples" / (std::to_string(rank) + ".jsonl"));
    std::vector<nlohmann::json> result;
    for (std::string line; std::getline(file, line);) {
      result.push_back(nlohmann::json::parse(line));
    }
    return result;
  }

  scaletrain::recipe::Recipe recipe;
};

BadSample bad(const std::string& key, std::int64_t position) {
  return {"a.tar: " + key + ".jpg (byte 512)",
          "the image does not decode: why",
          "a.tar",
          key,
          2,
          position};
}

}  // namespace

TEST_CASE("a bad sample is listed once, by the rank that met it") {
  const Run run;
  BadSamples samples(run.recipe, 3);
  samples.record({});
  CHECK(!fs::exists(fs::path(run.recipe.output) / "bad_samples"));
  samples.record({bad("x", 7), bad("\xff", 8)});
  samples.record({bad("x", 9)});
  BadSamples(run.recipe, 3).record({bad("y", 1)});  // the next attempt
  const auto lines = run.lines(3);
  REQUIRE(lines.size() == 3);
  CHECK(lines[0] == nlohmann::json{{"shard", "a.tar"},
                                   {"key", "x"},
                                   {"place", "a.tar: x.jpg (byte 512)"},
                                   {"reason", "the image does not decode: why"},
                                   {"epoch", 2},
                                   {"position", 7}});
  CHECK(lines[1].at("position") == 8);
  CHECK(lines[2].at("key") == "y");
}

TEST_CASE("a list that cannot be written ends nothing") {
  Run run;
  std::ofstream(fs::path(run.recipe.output) / "file") << "x";
  const std::string folder = run.recipe.output;
  run.recipe.output = folder + "/file";
  CHECK_NOTHROW(BadSamples(run.recipe, 0).record({bad("x", 7)}));
  run.recipe.output = folder;
}

TEST_CASE("more than the rate ends the run; the first thousand samples count as a thousand") {
  const Run run;
  const BadSamples samples(run.recipe, 0);
  CHECK_NOTHROW(samples.check("train", 10, 32));  // 10 of 1000
  CHECK_NOTHROW(samples.check("train", 50, 5000));
  CHECK_THROWS_AS(samples.check("train", 11, 32), core::DataError);
  const std::string expected =
      "/data/val: 51 of 5000 samples do not decode: more than /data/bad_samples/max_rate, which is "
      "0.01\n  look at " +
      run.recipe.output + "/bad_samples, repair the shards, or allow more";
  CHECK_THROWS_WITH_AS(samples.check("val", 51, 5000), expected.c_str(), core::DataError);
}
