#include "launcher/commands/prove/short_recipe.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "lib/core/error.h"
#include "lib/recipe/load.h"

namespace scaletrain::launcher {
namespace {

recipe::Recipe recipe_to_shorten(const std::string& batch) {
  return recipe::parse_recipe(fmt::format(R"({{"model": {{"name": "mlp", "num_classes": 3}},
          "data": {{"train": {{"shards": "a.tar"}}, "val": {{"shards": "b.tar"}}}},
          "batch": {}, "epochs": 30, "early_stopping": {{"patience": 2}}, "ema": {{"decay": 0.9}},
          "schedule": {{"warmup": {{"epochs": 2}}, "decay": "cosine"}},
          "optimizer": {{"name": "adamw", "lr": 0.1}}}})",
                                          batch),
                              "r.json");
}

}  // namespace

TEST_CASE("a shortened recipe keeps what trains and leaves out what measures") {
  const ShortRecipe shortened = shorten(recipe_to_shorten(R"({"per_device": 16})"), 6, 4);
  const recipe::Recipe& recipe = shortened.recipe;
  CHECK(recipe.length.unit == recipe::Duration::Unit::kSteps);
  CHECK(recipe.length.value == 6);
  CHECK(recipe.log.every.value == 1);
  CHECK(recipe.schedule.decay.name == "cosine");
  CHECK(recipe.schedule.warmup.has_value());
  CHECK(recipe.ema.has_value());
  CHECK(!recipe.data.val);
  CHECK(!recipe.early_stopping);
  CHECK(recipe.threads == 1);
  CHECK(refusal_of(recipe, 4) == "");
}

TEST_CASE("micro-batches are those that the largest number of ranks can share") {
  struct Case {
    const char* batch;
    int most_ranks;
    std::int64_t per_device, global;
    int ranks;
  };
  for (const Case& one :
       {Case{R"({"per_device": 16})", 4, 4, 16, 4},
        Case{R"({"per_device": 2, "global": 32})", 4, 2, 32, 4},
        Case{R"({"per_device": 6})", 4, 3, 6, 2},  // 6 / 4 is no integer
        Case{R"({"per_device": 5})", 4, 5, 5, 1}, Case{R"({"per_device": 16})", 1, 16, 16, 1}}) {
    CAPTURE(one.batch);
    const ShortRecipe shortened = shorten(recipe_to_shorten(one.batch), 6, one.most_ranks);
    CHECK(shortened.recipe.batch.per_device == one.per_device);
    CHECK(shortened.recipe.batch.global == one.global);
    CHECK(shortened.most_ranks == one.ranks);
  }
}

TEST_CASE("a batch size that is searched for is refused") {
  const recipe::Recipe recipe =
      recipe_to_shorten(R"({"per_device": "auto", "global": 16, "memory_mb": 100})");
  CHECK_THROWS_WITH_AS(shorten(recipe, 6, 4),
                       "/batch/per_device: \"auto\" may choose another size in each run\n"
                       "  give a number: --set batch.per_device=N",
                       core::UsageError);
}

TEST_CASE("a refusal has the reason that recipe check gives") {
  const recipe::Recipe recipe = recipe_to_shorten(R"({"per_device": 4, "global": 8})");
  CHECK(refusal_of(recipe, 2) == "");
  CHECK(refusal_of(recipe, 3).find("is not a multiple of") != std::string::npos);
}

}  // namespace scaletrain::launcher
