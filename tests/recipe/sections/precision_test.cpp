#include "lib/recipe/sections/precision.h"

#include <doctest/doctest.h>

#include "lib/recipe/load.h"
#include "tests/recipe/recipe_support.h"

namespace scaletrain::recipe {

TEST_CASE("fp16 has GradScaler's defaults, and a scale that moves") {
  const Precision precision =
      parse_recipe(minimal_recipe(), "r.json", {"precision=fp16"}).precision;
  CHECK(precision.number("init_scale") == 65536);
  CHECK(precision.number("growth_factor") == 2);
  CHECK(precision.number("backoff_factor") == 0.5);
  CHECK(precision.integer("growth_interval") == 2000);
  CHECK(error_of(minimal_recipe(), {R"(precision={"name": "fp16", "growth_factor": 1})"}) ==
        "--set precision: /precision/growth_factor: 1 is out of range\n"
        "  use a number above 1 and at most 1000");
}

TEST_CASE("bf16_pure rounds at random unless it is asked otherwise") {
  const auto update = [](const char* precision) {
    return parse_recipe(minimal_recipe(), "r.json", {precision}).precision.text("update");
  };
  CHECK(update("precision=bf16_pure") == "stochastic");
  CHECK(update(R"(precision={"name": "bf16_pure", "update": "kahan"})") == "kahan");
}

TEST_CASE("what a precision is asked for is in the resolved recipe") {
  for (const char* const precision :
       {R"(precision={"name": "bf16_pure", "update": "kahan"})",
        R"(precision={"name": "fp8", "scaling": "rowwise", "keep": ["a.*", "b"]})"}) {
    const Recipe recipe = parse_recipe(minimal_recipe(), "r.json", {precision});
    CHECK(differing_keys(recipe, parse_recipe(to_json(recipe), "r.json")).empty());
    CHECK(differing_keys(recipe, parse_recipe(minimal_recipe(), "r.json")).size() > 1);
  }
}

TEST_CASE("bf16_pure is refused with what needs fp32 weights") {
  CHECK(error_of(minimal_recipe(), {"precision=bf16_pure",
                                    R"(optimizer={"name": "schedule_free_adamw", "lr": 0.1})"}) ==
        "--set precision: schedule_free_adamw keeps fp32 weights in its state, which bf16_pure is "
        "to avoid\n  use bf16, or another optimizer");
  CHECK_NOTHROW(
      parse_recipe(minimal_recipe(), "r.json", {"precision=bf16_pure", "offload.optimizer=true"}));
  CHECK(error_of(minimal_recipe(), {"precision=bf16_pure", "sam={}"}) ==
        "--set sam: perturbs weights by less than bf16 can represent, and bf16_pure has no fp32 "
        "weights\n"
        "  leave it out, or use bf16");
}

TEST_CASE("fp8 on a CPU is refused before anything starts, unless it is simulated") {
  CHECK(error_of(minimal_recipe(), {"precision=fp8", "device=cpu"}) ==
        "--set precision: fp8 needs a GPU, and \"device\" is cpu\n"
        "  use bf16, or compute the same roundings slowly with \"simulate\": true");
  CHECK_NOTHROW(parse_recipe(minimal_recipe(), "r.json", {"precision=fp8", "device=auto"}));
  CHECK_NOTHROW(parse_recipe(minimal_recipe(), "r.json",
                             {R"(precision={"name": "fp8", "simulate": true})", "device=cpu"}));
}

TEST_CASE("what must know the layers takes no model that does not show them") {
  const std::string torchscript =
      R"(model={"name": "torchscript", "num_classes": 10, "file": "m.pt"})";
  CHECK(error_of(minimal_recipe(), {torchscript, "precision=bf16_pure"}) ==
        "--set precision: bf16_pure must know the model's layers, and torchscript does not show "
        "them\n  use bf16, fp16, tf32 or fp32");
  CHECK_NOTHROW(parse_recipe(minimal_recipe(), "r.json", {torchscript, "precision=fp16"}));
}

}  // namespace scaletrain::recipe
