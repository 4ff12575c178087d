#include "lib/train/loop/norms.h"

#include <ATen/Parallel.h>
#include <doctest/doctest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/dist/ranks.h"
#include "tests/train/run/run_support.h"

namespace scaletrain::train::norms_test {
namespace {

using Json = nlohmann::json;

struct Layout {
  const char* name;
  std::vector<std::string> changes;  // as --set takes them
  int ranks = 1;
};

// The norms of a vit, trained with plain SGD in a layout.
std::vector<Json> norms_of(const Layout& layout) {
  const testing::TinyRun tiny;
  std::vector<std::string> changes{
      R"(model={"name": "vit_tiny", "num_classes": 3, "patch_size": 2, "dim": 16, "depth": 2,
                "heads": 2})",
      R"(batch={"global": 8, "per_device": 4})", R"(log={"histograms": {"steps": 2}})",
      R"(optimizer={"name": "sgd", "lr": 0.125, "momentum": 0})", R"(clip={"norm": 100})"};
  changes.insert(changes.end(), layout.changes.begin(), layout.changes.end());
  const recipe::Recipe recipe = tiny.recipe(changes);
  for (const auto& rank :
       testing::run_ranks({.world_size = layout.ranks}, [&](const core::WorkerEnv& env) {
         at::set_num_threads(1);
         return testing::ended(recipe, std::nullopt, env);
       })) {
    REQUIRE_MESSAGE(rank.text == "code 0 after step 4", rank.text);
  }
  std::ifstream file(tiny.path("run") + "/metrics.jsonl");
  std::vector<Json> records;
  for (std::string line; std::getline(file, line);) {
    Json record = Json::parse(line);
    if (record.at("event") == "norms") records.push_back(std::move(record));
  }
  REQUIRE(records.size() == 2);  // steps 2 and 4
  return records;
}

}  // namespace

TEST_CASE("norms of units are those of one rank in each layout") {
  const std::vector<Json> alone = norms_of({"one rank", {}});
  CHECK(alone[0].at("step") == 2);
  CHECK(alone[0].at("weight").contains("blocks.1"));
  for (const auto& [unit, gradient] : alone[0].at("gradient").items()) {
    CAPTURE(unit);
    // SGD changes a weight by the learning rate times its gradient, in fp32.
    const double update = alone[0].at("update_ratio").at(unit).get<double>() *
                          alone[0].at("weight").at(unit).get<double>();
    CHECK(update == doctest::Approx(0.125 * gradient.get<double>()).epsilon(1e-4));
  }
  for (const Layout& layout : std::vector<Layout>{
           {"data parallel", {}, 2},
           {"sharded", {R"(parallel={"shard": 2})"}, 2},
           {"pipeline x tensor", {R"(parallel={"pipeline": 2, "tensor": 2})"}, 4}}) {
    CAPTURE(std::string(layout.name));
    const std::vector<Json> found = norms_of(layout);
    for (const char* const field : {"weight", "gradient", "update_ratio"}) {
      CAPTURE(std::string(field));
      REQUIRE(found[0].at(field).size() == alone[0].at(field).size());
      for (const auto& [unit, value] : alone[0].at(field).items()) {
        CAPTURE(unit);
        CHECK(found[0].at(field).at(unit).get<double>() ==
              doctest::Approx(value.get<double>()).epsilon(1e-3));
      }
    }
  }
}

}  // namespace scaletrain::train::norms_test
