#include "lib/recipe/lint/lint.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "lib/recipe/load.h"

namespace scaletrain::recipe {
namespace {

using RuleNames = std::vector<std::string>;

// Recipes without a finding, one for each kind of data.
constexpr const char* kImageRecipe = R"({
  "model": {"name": "resnet18", "num_classes": 10},
  "data": {"train": {"shards": "train.tar", "augment": ["random_flip"]},
           "val": {"shards": "val.tar"}, "test": {"shards": "test.tar"}},
  "batch": {"per_device": 32},
  "optimizer": {"name": "sgd", "lr": 0.1},
  "epochs": 10})";
constexpr const char* kTokenRecipe = R"({
  "model": {"name": "gpt2", "vocab_size": 256, "positions": 16, "dim": 8, "depth": 1, "heads": 1},
  "data": {"train": {"tokens": "train.bin"}, "val": {"tokens": "val.bin"}},
  "batch": {"per_device": 32},
  "optimizer": {"name": "adamw", "lr": 0.001},
  "schedule": {"warmup": {"steps": 10}},
  "clip": {"norm": 1.0},
  "validate": {"every": {"steps": 50}},
  "checkpoint": {"every": {"steps": 50}},
  "steps": 100})";

struct LintCase {
  const char* recipe;
  RuleNames unusual;  // --set
  RuleNames usual;    // --set of a neighbour without a finding
  std::string rule, place;
  LintFacts facts = {.ranks = 1, .samples = 320};
};

std::vector<LintCase> lint_cases() {
  return {
      {kImageRecipe, {"optimizer.lr=3"}, {"optimizer.lr=0.3"}, "learning-rate", "/optimizer/lr"},
      {kImageRecipe,
       {"optimizer.lr=0.0001"},
       {"optimizer.lr=0.001"},
       "learning-rate",
       "/optimizer/lr"},
      {kTokenRecipe,
       {"schedule.warmup=null"},
       {"optimizer.name=sgd", "optimizer.lr=0.01", "schedule.warmup=null"},
       "no-warmup",
       "/schedule/warmup"},
      {kTokenRecipe,
       {"optimizer.weight_decay=0.1", "optimizer.decay_norm_and_bias=true"},
       {"optimizer.weight_decay=0.0001", "optimizer.decay_norm_and_bias=true"},
       "norm-and-bias-decay",
       "/optimizer/decay_norm_and_bias"},
      {kTokenRecipe, {"clip=null"}, {}, "no-clip", "/clip"},
      {kImageRecipe,
       {"loss.label_smoothing=0.1", "mix.cutmix=1"},
       {"loss.label_smoothing=0.1", "mix.mixup=0.2"},
       "smoothing-with-mix",
       "/loss/label_smoothing"},
      {kTokenRecipe, {"ema.decay=0.9999"}, {"ema.decay=0.9"}, "ema-too-long", "/ema/decay"},
      {kTokenRecipe,
       {"ema.decay=0.9999"},
       {"ema.decay=0.9999", "ema.warmup=true"},
       "ema-too-long",
       "/ema/decay"},
      {kTokenRecipe,
       {"schedule.warmup.steps=100"},
       {"schedule.warmup.steps=99"},
       "warmup-too-long",
       "/schedule/warmup"},
      {kTokenRecipe,
       {"validate.every.steps=101"},
       {"validate.every.steps=100"},
       "validation-never-due",
       "/validate/every"},
      {kTokenRecipe,
       {"checkpoint.every.steps=101"},
       {"checkpoint.every.steps=100"},
       "checkpoint-never-due",
       "/checkpoint/every"},
      // 320 samples are 10 steps of 32: the run has 100 steps.
      {kImageRecipe,
       {"checkpoint.every.steps=101"},
       {"checkpoint.every.steps=100"},
       "checkpoint-never-due",
       "/checkpoint/every"},
      {kImageRecipe,
       {"data.val=null", "data.test=null"},
       {"data.test=null"},
       "no-validation",
       "/data"},
      {kImageRecipe,
       {"data.val.shards=train.tar"},
       {"data.val.shards=other.tar"},
       "val-in-train",
       "/data/val"},
      {kImageRecipe,
       {"data.test.shards=val.tar"},
       {"data.test.shards=other.tar"},
       "test-selects",
       "/data/test"},
      {kImageRecipe,
       {"data.train.augment=[]"},
       {"data.train.augment=[]", "mix.mixup=0.2"},
       "no-augmentation",
       "/data/train/augment"},
      {kImageRecipe,
       {"batch.per_device=8", "optimizer.lr=0.05"},
       {"batch.per_device=16"},
       "batch-norm-batch",
       "/batch/per_device"},
      {kImageRecipe,
       {"batch.per_device=8", "optimizer.lr=0.05"},
       {"batch.per_device=8", "optimizer.lr=0.05", "model.norm=group"},
       "batch-norm-batch",
       "/batch/per_device"},
      {kTokenRecipe,
       {"precision=bf16", "model.vocab_size=257"},
       {"model.vocab_size=257"},
       "vocabulary-size",
       "/model/vocab_size"},
      {kImageRecipe,
       {"precision=bf16", "batch.per_device=33"},
       {"batch.per_device=33"},
       "batch-multiple",
       "/batch/per_device"},
  };
}

RuleNames rules_of(const char* text, const RuleNames& overrides, const LintFacts& facts) {
  RuleNames names;
  for (const LintFinding& one : lint(parse_recipe(text, "r.json", overrides), facts)) {
    names.push_back(one.rule);
  }
  return names;
}

TEST_CASE("each lint rule finds its mistake, and nothing in a neighbour of it") {
  std::set<std::string> seen;
  for (const LintCase& one : lint_cases()) {
    CAPTURE(one.rule);
    CHECK(rules_of(one.recipe, {}, one.facts) == RuleNames{});
    CHECK(rules_of(one.recipe, one.usual, one.facts) == RuleNames{});
    const auto found = lint(parse_recipe(one.recipe, "r.json", one.unusual), one.facts);
    REQUIRE(rules_of(one.recipe, one.unusual, one.facts) == RuleNames{one.rule});
    CHECK(found[0].place == one.place);
    CHECK(!found[0].found.empty());
    CHECK(!found[0].why.empty());
    CHECK(!found[0].remedy.empty());
    seen.insert(one.rule);
  }
  for (const LintRule& rule : lint_rules())
    CHECK_MESSAGE(seen.contains(std::string(rule.name)), rule.name);
  CHECK(seen.size() == lint_rules().size());
}

TEST_CASE("a lint finding shows the values of the recipe") {
  const auto found = lint(parse_recipe(kTokenRecipe, "r.json", {"schedule.warmup.steps=200"}));
  REQUIRE(found.size() == 1);
  CHECK(found[0].found == "200 steps, and the run has 100 steps");
  CHECK(found[0].remedy == "use 1 to 10 % of the run");
}

// Returns the project's recipes, found from the folder that tests run in.
std::filesystem::path shipped_folder() {
  namespace fs = std::filesystem;
  for (fs::path folder = fs::current_path();; folder = folder.parent_path()) {
    if (fs::exists(folder / "recipes" / "digits_mlp.json")) return folder / "recipes";
    REQUIRE_MESSAGE(folder.has_relative_path(), "no folder above has recipes/digits_mlp.json");
  }
}

TEST_CASE("the shipped recipes have no lint finding") {
  namespace fs = std::filesystem;
  const fs::path folder = shipped_folder();
  int recipes = 0;
  for (const fs::path& where : {folder, folder / "techniques"}) {
    for (const fs::directory_entry& file : fs::directory_iterator(where)) {
      if (file.path().extension() != ".json") continue;
      CAPTURE(file.path().string());
      RuleNames found;
      for (const LintFinding& one : lint(load_recipe(file.path()))) {
        found.push_back(one.rule + ": " + one.found);
      }
      CHECK(found == RuleNames{});
      ++recipes;
    }
  }
  CHECK(recipes >= 10);
}

}  // namespace
}  // namespace scaletrain::recipe
