#include "lib/recipe/sections/parallel/parallel.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>

#include "lib/core/error.h"
#include "lib/core/plan/mesh_plan.h"
#include "lib/recipe/load.h"
#include "lib/recipe/sections/whole_tensors.h"
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

TEST_CASE("every optimizer goes with ranks that have parts of tensors") {
  for (const std::string name :
       {"adafactor", "adamw_8bit", "lamb", "lars", "lion_8bit", "muon", "soap"}) {
    const std::string optimizer = R"(optimizer={"name": ")" + name + R"(", "lr": 0.1})";
    const Recipe recipe = parse_recipe(minimal_recipe(), "r.json", {"parallel.shard=2", optimizer});
    CHECK(needs_whole_tensors(recipe.optimizer));
  }
  const Recipe plain = parse_recipe(minimal_recipe(), "r.json", {"parallel.shard=2"});
  CHECK_FALSE(needs_whole_tensors(plain.optimizer));
  const Recipe central = parse_recipe(minimal_recipe(), "r.json",
                                      {"parallel.shard=2", "optimizer.centralize_gradients=true"});
  CHECK(needs_whole_tensors(central.optimizer));
  CHECK_NOTHROW(
      parse_recipe(minimal_recipe(), "r.json", {"parallel.shard=2", "clip.adaptive=0.1"}));
  CHECK_NOTHROW(parse_recipe(
      minimal_recipe(), "r.json",
      {"parallel.shard=2",
       R"(optimizer={"name": "schedule_free_adamw", "lr": 0.1, "centralize_gradients": true})"}));
  CHECK(error_of(minimal_recipe(), {"parallel.shard=2", "checkpoint.writers=rank_0"})
            .find("rank 0 has only a part of the model") != std::string::npos);
  for (const std::string name : {"adamw", "sgd", "lion", "nadam", "schedule_free_adamw"}) {
    CHECK_NOTHROW(
        parse_recipe(minimal_recipe(), "r.json",
                     {"parallel.shard=2", R"(optimizer={"name": ")" + name + R"(", "lr": 0.1})"}));
  }
}

TEST_CASE("weights are gathered as bf16 where parts are gathered, for layers that take bf16") {
  const auto error_with = [](std::vector<std::string> changes) {
    changes.insert(changes.end(), {"parallel.shard=2", "parallel.types.parameters=bf16"});
    const std::string error = error_of(minimal_recipe(), changes);
    return error.substr(std::min(error.size(), error.find("parallel.types")));
  };
  CHECK(error_with({"precision=bf16"}) == "");
  CHECK(
      error_with({"precision=fp32"}) ==
      "parallel.types.parameters: layers of \"precision\": \"fp32\" need weights of another dtype\n"
      "  use \"precision\": \"bf16\", or \"fp32\"");
  CHECK(error_with({"precision=bf16", "parallel.shard_level=gradients"}) ==
        "parallel.types.parameters: \"shard_level\": \"gradients\" gathers the weights themselves, "
        "not a copy\n"
        "  use \"shard_level\": \"parameters\", or \"fp32\"");
  CHECK_NOTHROW(
      parse_recipe(minimal_recipe(), "r.json", {"parallel.shard=2", "parallel.types.reduce=bf16"}));
}

}  // namespace scaletrain::recipe
