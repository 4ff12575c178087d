#include "lib/recipe/sections/batch.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "lib/core/error.h"
#include "lib/recipe/load.h"
#include "tests/recipe/recipe_support.h"

namespace scaletrain::recipe {

TEST_CASE("divide_batch multiplies accumulation and ranks") {
  const BatchPlan plan = divide_batch({.per_device = 32, .accumulate = 2, .global = {}}, 4);
  CHECK(plan.per_device == 32);
  CHECK(plan.accumulate == 2);
  CHECK(plan.global == 256);  // 32 * 2 * 4
}

TEST_CASE("divide_batch divides a global batch over the ranks") {
  const BatchPlan plan = divide_batch({.per_device = 32, .accumulate = {}, .global = 256}, 2);
  CHECK(plan.accumulate == 4);  // 256 / (32 * 2)
  CHECK(plan.global == 256);
}

TEST_CASE("an epoch holds one global batch at least") {
  const BatchPlan plan = divide_batch({.per_device = 4, .accumulate = 3, .global = {}}, 2);
  CHECK_NOTHROW(check_epoch_of(plan, 24));
  CHECK_THROWS_WITH_AS(check_epoch_of(plan, 23),
                       "/batch: a global batch of 24 samples (per_device 4 x accumulate 3 x 2 "
                       "ranks) is more than the 23 samples of an epoch\n"
                       "  lower per_device or accumulate, use fewer ranks, or add data",
                       core::RecipeError);
  CHECK_THROWS_WITH_AS(check_epoch_of({.global = 24}, 5),
                       "/batch: a global batch of 24 samples is more than the 5 samples of an "
                       "epoch\n"
                       "  lower per_device or accumulate, use fewer ranks, or add data",
                       core::RecipeError);
}

TEST_CASE("divide_batch names what would fit") {
  const auto message = [](std::int64_t global, int ranks) -> std::string {
    try {
      (void)divide_batch({.per_device = 32, .accumulate = {}, .global = global}, ranks);
    } catch (const core::RecipeError& error) {
      return error.what();
    }
    return "no error";
  };
  CHECK(message(256, 3) ==
        "/batch/global: 256 is not a multiple of 96 = per_device 32 x 3 ranks\n"
        "  use 192 or 288, or another number of ranks");
  CHECK(message(64, 3) ==
        "/batch/global: 64 is not a multiple of 96 = per_device 32 x 3 ranks\n"
        "  use 96, or fewer ranks, or a smaller per_device");
  CHECK(message(96, 3) == "no error");
}

TEST_CASE("a batch may grow, and its plan has the sizes") {
  const Recipe recipe =
      parse_recipe(minimal_recipe(), "r.json", {R"(batch={"global": 256, "per_device": 32,
                 "ramp": {"start": 64, "increment": 64, "samples": 100000}})"});
  const BatchPlan plan = divide_batch(recipe.batch, 2);
  CHECK(plan.accumulate == 4);
  CHECK(plan.micro_steps(64) == 1);
  CHECK(plan.micro_steps(192) == 3);
  CHECK(plan.sizes().of_step(0) == 64);
  CHECK(plan.sizes().of_step(100000) == 256);
  const std::string text = to_json(recipe);
  CHECK(to_json(parse_recipe(text, "r.json")) == text);
  CHECK(part_of_all(*recipe.batch.ramp) == 64);
  CHECK_THROWS_WITH(divide_batch(recipe.batch, 4),
                    "/batch/ramp/start: 64 is not a multiple of 128 = per_device 32 x 4 ranks\n"
                    "  use 128, or fewer ranks, or a smaller per_device");
  const auto found = [&](const std::string& batch) {
    return divide_batch(parse_recipe(minimal_recipe(), "r.json", {"batch=" + batch}).batch, 3);
  };
  CHECK_THROWS_WITH(found(R"({"global": 60, "per_device": "auto",
                               "ramp": {"start": 30, "increment": 10, "samples": 100}})"),
                    "/batch/ramp/increment: 10 is not a multiple of 3 ranks\n"
                    "  use 9 or 12, or another number of ranks");
}

TEST_CASE("a ramp that cannot be is refused with the numbers that fit") {
  const auto with = [](const std::string& ramp, const std::string& global = R"("global": 256)") {
    return error_of(minimal_recipe(),
                    {fmt::format(R"(batch={{{}, "per_device": 32, "ramp": {}}})", global, ramp)});
  };
  const std::string place = "--set batch: /batch/ramp/";
  CHECK(with(R"({"start": 256, "increment": 32, "samples": 9})") ==
        place +
            "start: 256 does not grow to \"global\", which is 256\n"
            "  use less, or leave the ramp out");
  CHECK(with(R"({"start": 64, "increment": 128, "samples": 9})") ==
        place +
            "increment: 128 times a whole number is not the 192 from 64 to 256\n"
            "  use 64, or another divisor of 192");
  CHECK(with(R"({"start": 16, "increment": 48, "samples": 9})") ==
        place + "start: 16 is not a multiple of \"per_device\", which is 32\n  use 32\n" + place +
            "increment: 48 is not a multiple of \"per_device\", which is 32\n  use 32 or 64");
  CHECK(with(R"({"start": 64, "increment": 32, "samples": 9})", R"("accumulate": 4)") ==
        "--set batch: /batch/ramp: grows to \"global\", and there is none\n"
        "  add \"global\": N in place of \"accumulate\"");
  CHECK(with(R"({"start": 32, "increment": 32, "samples": 9})", R"("global": 1000000)") != "");
}

TEST_CASE("a ramp in a training of so many steps needs a schedule in steps") {
  const std::string ramp = R"(batch={"global": 96, "per_device": 32,
                                     "ramp": {"start": 32, "increment": 32, "samples": 9}})";
  const std::string refused =
      "--set batch: /batch/ramp: the schedule is in epochs, which have more steps while the batch "
      "grows, and the length of training is in steps\n"
      "  give the training's length in \"epochs\", or the schedule in steps";
  const std::vector<std::string> schedules{
      R"(schedule={"warmup": {"epochs": 1}})", R"(schedule={"cooldown": {"epochs": 1}})",
      R"(schedule={"by": "epoch"})", R"(schedule={"decay": "step"})",
      R"(schedule={"decay": "exponential"})"};
  for (const std::string& schedule : schedules) {
    CAPTURE(schedule);
    CHECK(error_of(minimal_recipe(), {"epochs=null", "steps=9", ramp, schedule}) == refused);
    CHECK_NOTHROW(parse_recipe(minimal_recipe(), "r.json", {ramp, schedule}));
  }
  CHECK_NOTHROW(parse_recipe(minimal_recipe(), "r.json",
                             {"epochs=null", "steps=9", ramp, R"(schedule.warmup={"steps": 2})"}));
}

TEST_CASE("the samples of a device may be left to be found, of a global batch") {
  const Recipe recipe = parse_recipe(
      minimal_recipe(), "r.json",
      {R"(batch={"per_device": "auto", "global": 64, "memory_mb": 100})", "mix.mixup=0.2"});
  CHECK(recipe.batch.is_automatic());
  CHECK(recipe.batch.memory_mb == 100);
  const BatchPlan plan = divide_batch(recipe.batch, 4);
  CHECK(plan.per_device == 0);
  CHECK(plan.global == 64);
  CHECK_THROWS_WITH(divide_batch(recipe.batch, 3),
                    "/batch/global: 64 is not a multiple of 3 ranks\n"
                    "  use 63 or 66, or another number of ranks");
  CHECK_THROWS_WITH(divide_batch(recipe.batch, 65),
                    "/batch/global: 64 is not a multiple of 65 ranks\n"
                    "  use 65, or fewer ranks");
  CHECK_FALSE(parse_recipe(minimal_recipe(), "r.json").batch.is_automatic());

  CHECK(
      error_of(minimal_recipe(), {"batch.per_device=auto"}) ==
      "--set batch.per_device: \"auto\" finds what \"global\" is divided into, and there is none\n"
      "  add \"global\": N in place of \"accumulate\", or use a number");
  CHECK(error_of(minimal_recipe(), {"batch.per_device=many"}) ==
        "--set batch.per_device: \"many\" is not a number of samples\n"
        "  use an integer from 1 to 1048576, or \"auto\"");
}

}  // namespace scaletrain::recipe
