#include "launcher/commands/plan/variants.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "lib/recipe/load.h"
#include "lib/recipe/recipe.h"

namespace scaletrain::launcher {
namespace {

recipe::Recipe gpt2_recipe() {
  return recipe::parse_recipe(
      R"({"model": {"name": "gpt2", "vocab_size": 512, "positions": 64, "dim": 64, "depth": 4,
                    "heads": 4},
          "data": {"train": {"tokens": "a.bin"}, "context": 64},
          "batch": {"per_device": 4, "global": 64},
          "optimizer": {"name": "adamw", "lr": 0.1}, "steps": 10})",
      "r.json");
}

Prediction prediction_of(double bytes, double step_s) {
  Prediction prediction;
  prediction.memory = {.shares = {{"parameters", bytes}}, .capacity = 100};
  prediction.time.forward = step_s;
  return prediction;
}

bool has(const std::vector<Variant>& variants, const std::string& name) {
  return std::any_of(variants.begin(), variants.end(),
                     [&](const Variant& one) { return one.name == name; });
}

std::vector<std::string> names_of(const std::vector<RankedVariant>& ranked) {
  std::vector<std::string> names;
  for (const RankedVariant& one : ranked) names.push_back(one.variant.name);
  return names;
}

}  // namespace

TEST_CASE("layouts are those that the recipe accepts, with less communication first") {
  const std::vector<Variant> variants = layout_variants(gpt2_recipe(), 8, 4);
  REQUIRE(!variants.empty());
  CHECK(variants.front().name == "data parallel");
  CHECK(has(variants, "shard 4 optimizer"));
  CHECK(has(variants, "shard 8 parameters, recompute all"));
  CHECK(has(variants, "tensor 4"));
  CHECK(has(variants, "pipeline 2, tensor 2"));
  // A model without experts, and more tensor ranks than a node has.
  for (const Variant& one : variants) {
    CAPTURE(one.name);
    CHECK(one.name.find("expert") == std::string::npos);
    CHECK(one.name.find("tensor 8") == std::string::npos);
    CHECK_NOTHROW(recipe::parse_recipe(recipe::to_json(gpt2_recipe()), "r.json", one.overrides));
  }
}

TEST_CASE("techniques leave out the recipe as it is") {
  const std::vector<Variant> variants = technique_variants(gpt2_recipe(), 2);
  CHECK(has(variants, "recompute all"));
  CHECK(!has(variants, "as it is"));
}

TEST_CASE("a recipe that fits is compared with faster ones that fit") {
  const std::vector<Variant> variants{{"faster", {}},  {"slower", {}},  {"too large", {}},
                                      {"refused", {}}, {"fastest", {}}, {"not tried", {}}};
  const auto predict_one = [](const Variant& one) -> std::optional<Prediction> {
    if (one.name == "faster") return prediction_of(90, 8);
    if (one.name == "slower") return prediction_of(10, 20);
    if (one.name == "too large") return prediction_of(101, 1);
    if (one.name == "fastest") return prediction_of(95, 5);
    if (one.name == "not tried") return prediction_of(1, 1);
    return std::nullopt;
  };
  using Names = std::vector<std::string>;
  CHECK(names_of(rank_variants(variants, prediction_of(50, 10), 5, predict_one)) ==
        Names{"fastest", "faster"});
  // A recipe that does not fit is compared with all that do.
  CHECK(names_of(rank_variants(variants, prediction_of(150, 10), 5, predict_one)) ==
        Names{"fastest", "faster", "slower"});
}

}  // namespace scaletrain::launcher
