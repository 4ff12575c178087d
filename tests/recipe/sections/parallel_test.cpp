#include "lib/recipe/sections/parallel.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "lib/core/error.h"
#include "lib/core/mesh_plan.h"
#include "lib/recipe/load.h"
#include "tests/recipe/recipe_support.h"

namespace scaletrain::recipe {
namespace {

Parallel parallel_with(const std::vector<std::string>& overrides) {
  return parse_recipe(minimal_recipe(), "r.json", overrides).parallel;
}

}  // namespace

TEST_CASE("every rank has the whole model unless ranks hold it together") {
  CHECK(parallel_with({}).shard == 1);
  CHECK_FALSE(parallel_with({}).replica.has_value());
  const Parallel parallel = parallel_with({"parallel.shard=4", "parallel.replica=2"});
  CHECK(parallel.shard == 4);
  CHECK(parallel.replica == 2);
  CHECK(parallel.shard_level == "parameters");
  CHECK(parallel_with({"parallel.shard=2", "parallel.shard_level=optimizer"}).shard_level ==
        "optimizer");
  CHECK(error_of(minimal_recipe(), {"parallel.shard_level=weights"}) ==
        "--set parallel.shard_level: \"weights\" is not a choice here\n"
        "  use one of: \"optimizer\", \"gradients\", \"parameters\"");
  CHECK(error_of(minimal_recipe(), {"parallel.shard=0"}).find("out of range") != std::string::npos);
}

TEST_CASE("ranks that do not fit are refused with numbers that do") {
  const auto refused = [](int ranks, const std::vector<std::string>& overrides) -> std::string {
    try {
      core::MeshPlan(ranks, parallel_with(overrides).mesh());
    } catch (const core::RecipeError& error) {
      return error.what();
    }
    return "";
  };
  CHECK(refused(8, {"parallel.shard=4"}).empty());
  CHECK(refused(6, {"parallel.shard=4"}) ==
        "/parallel: 6 ranks are not a multiple of 4 = shard 4\n"
        "  start 4 or 8 ranks, or change one of these");
  CHECK(refused(8, {"parallel.shard=2", "parallel.replica=2"}) ==
        "/parallel: 8 ranks are not the 4 of replica 2 x shard 2\n"
        "  start 4 ranks, or leave out \"replica\", which then takes all ranks that are left");
}

TEST_CASE("what looks at whole tensors is refused where a rank has parts of them") {
  const auto refused = [](const std::string& change, const std::string& what) {
    CAPTURE(change);
    const std::string error = error_of(minimal_recipe(), {"parallel.shard=2", change});
    CHECK(error.find(fmt::format(
              "{} looks at whole tensors, and of \"shard\": 2 ranks each has parts", what)) !=
          std::string::npos);
    CHECK_NOTHROW(parse_recipe(minimal_recipe(), "r.json", {change}));
  };
  for (const std::string name :
       {"adafactor", "adamw_8bit", "lamb", "lars", "lion_8bit", "muon", "soap"}) {
    refused(R"(optimizer={"name": ")" + name + R"(", "lr": 0.1})", "/optimizer/name: " + name);
  }
  refused("optimizer.centralize_gradients=true", "it");
  refused("clip.adaptive=0.1", "it");
  CHECK(error_of(minimal_recipe(), {"parallel.shard=2", "checkpoint.writers=rank_0"})
            .find("rank 0 has only its part of the model") != std::string::npos);
  for (const std::string name : {"adamw", "sgd", "lion", "nadam", "schedule_free_adamw"}) {
    CHECK_NOTHROW(
        parse_recipe(minimal_recipe(), "r.json",
                     {"parallel.shard=2", R"(optimizer={"name": ")" + name + R"(", "lr": 0.1})"}));
  }
}

}  // namespace scaletrain::recipe
