// What a run of a mixture of experts leaves beside its weights.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "lib/format/checkpoint/checkpoint_folder.h"
#include "tests/dist/ranks.h"
#include "tests/train/run/run_support.h"

namespace scaletrain::train {
namespace {

// A mixture of experts in four steps of a global batch of 4.
recipe::Recipe experts_recipe(const testing::TinyRun& tiny, const std::string& options,
                              const std::vector<std::string>& changes = {}) {
  std::ofstream tokens(tiny.path("text.bin"), std::ios::binary);  // of 2 bytes
  for (int i = 0; i < 2000; ++i) tokens << static_cast<char>((i * i + i / 7) % 50) << '\0';
  std::vector<std::string> all{
      fmt::format(R"(model={{"name": "mixtral", "vocab_size": 50, "positions": 16, "dim": 16,
                             "depth": 2, "heads": 4, "hidden": 24, "experts": 4{}}})",
                  options),
      "data.val=null",
      "data.train=null",
      "data.train.tokens=" + tiny.path("text.bin"),
      "data.context=16",
      R"(batch={"global": 4, "per_device": 2})",
      "log.every={\"steps\": 1}"};
  all.insert(all.end(), changes.begin(), changes.end());
  return tiny.recipe(all);
}

void train_on(int ranks, const recipe::Recipe& recipe) {
  for (const auto& rank :
       testing::run_ranks({.world_size = ranks}, [&](const core::WorkerEnv& env) {
         return testing::ended(recipe, {}, ranks == 1 ? core::WorkerEnv{} : env);
       })) {
    CHECK(rank.text == "code 0 after step 4");
  }
}

// Its lines of metrics.jsonl.
std::vector<nlohmann::json> lines_of_experts(int ranks, const std::string& options) {
  const testing::TinyRun tiny;
  const recipe::Recipe recipe = experts_recipe(tiny, options);
  train_on(ranks, recipe);
  std::vector<nlohmann::json> lines;
  std::ifstream stream(recipe.output + "/metrics.jsonl");
  for (std::string line; std::getline(stream, line);) {
    const auto json = nlohmann::json::parse(line);
    if (json.at("event") == "train") lines.push_back(json);
  }
  return lines;
}

}  // namespace

TEST_CASE("the metrics say how busy experts are, over all ranks") {
  const std::string options = R"(, "capacity_factor": 1.25, "router_bias_rate": 0.01)";
  const std::vector<nlohmann::json> one = lines_of_experts(1, options),
                                    two = lines_of_experts(2, options);
  REQUIRE(one.size() == 4);
  REQUIRE(two.size() == 4);
  for (std::size_t step = 0; step < 4; ++step) {
    CAPTURE(step);
    const nlohmann::json& model = one[step].at("model");
    CHECK(model.size() == 5);
    for (const char* const block : {"0", "1"}) {
      // Two of four experts a token: an expert has a quarter of the choices at least, a half at
      // most, of which the capacity is 1.25 quarters.
      const double busiest = model.at(fmt::format("busiest_share.{}", block));
      const double dropped = model.at(fmt::format("dropped_share.{}", block));
      CHECK(busiest >= 0.25);
      CHECK(busiest <= 0.5);
      CHECK(dropped >= busiest - 0.3125);
    }
    CHECK(model.at("balance_loss").get<double>() >= 1.9);  // 2 where all are even
    CHECK(model.at("balance_loss").get<double>() < 4);
    CHECK(one[step].at("loss").get<double>() ==
          doctest::Approx(two[step].at("loss").get<double>()).epsilon(1e-5));
    for (const auto& [name, value] : model.items()) {
      CAPTURE(name);
      CHECK(two[step].at("model").at(name).get<double>() ==
            doctest::Approx(value.get<double>()).epsilon(1e-5));
    }
  }
}

TEST_CASE("what has no weight and no capacity is not in the metrics") {
  const std::vector<nlohmann::json> lines = lines_of_experts(1, R"(, "router_aux_loss": 0)");
  REQUIRE(lines.size() == 4);
  CHECK(lines[0].at("model").size() == 2);  // the busiest share of two blocks
  CHECK_FALSE(lines[0].at("model").contains("balance_loss"));
}

TEST_CASE("a step that is left out moves no bias, and the next one does") {
  const testing::TinyRun tiny;
  const recipe::Recipe recipe =
      experts_recipe(tiny, R"(, "router_bias_rate": 0.1)",
                     {R"(checkpoint={"every": {"steps": 1}, "keep_last": 4})"});
  setenv("SCALETRAIN_FAULT", "nan@3", 1);
  train_on(1, recipe);
  unsetenv("SCALETRAIN_FAULT");
  std::vector<std::string> digests;
  for (int step = 1; step <= 4; ++step) {
    digests.push_back(format::model_digest(
        format::checkpoint_path(std::filesystem::path(recipe.output) / "checkpoints", step)));
  }
  CHECK(digests[0] != digests[1]);
  CHECK(digests[1] == digests[2]);
  CHECK(digests[2] != digests[3]);
}

}  // namespace scaletrain::train
