#include "lib/recipe/techniques.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "lib/recipe/load.h"
#include "tests/recipe/recipe_support.h"

namespace scaletrain::recipe {
namespace {

std::vector<std::string> technique_names(const std::vector<std::string>& changes, int ranks = 1) {
  std::vector<std::string> names;
  for (const Technique& one :
       techniques(parse_recipe(minimal_recipe(), "r.json", changes), ranks)) {
    names.push_back(one.name);
  }
  return names;
}

}  // namespace

TEST_CASE("a recipe has the techniques that change it, the global batch staying the same") {
  CHECK(technique_names({}) ==
        std::vector<std::string>{"as it is", "bf16", "recompute all", "recompute every 2nd",
                                 "recompute every 3rd", "accumulate x2", "accumulate x4",
                                 "offload activations", "offload optimizer",
                                 "bf16 + recompute every 2nd", "bf16 + recompute all",
                                 "bf16 + recompute all + accumulate x4"});
  CHECK(technique_names({"precision=bf16", "recompute=all", "batch.per_device=3"}) ==
        std::vector<std::string>{"as it is", "recompute every 2nd", "recompute every 3rd",
                                 "offload activations", "offload optimizer"});
  // The batch is not known, and bench measures what a budget would choose from.
  CHECK(
      technique_names({R"(batch={"per_device": "auto", "global": 64})", "precision=bf16",
                       "recompute=all", "offload={\"activations\": true, \"optimizer\": true}"}) ==
      std::vector<std::string>{"as it is", "recompute every 2nd", "recompute every 3rd"});

  // Several ranks may hold the model together, whatever the optimizer.
  const std::vector<std::string> alone{"recompute=all", "precision=bf16", "batch.per_device=1"};
  CHECK(technique_names(alone, 4) ==
        std::vector<std::string>{
            "as it is", "recompute every 2nd", "recompute every 3rd", "offload activations",
            "offload optimizer", "shard optimizer", "shard gradients", "shard parameters",
            "shard parameters + offload optimizer", "shard parameters + offload parameters"});
  std::vector<std::string> with_lamb = alone;
  with_lamb.push_back("optimizer.name=lamb");
  CHECK(technique_names(with_lamb, 4) == technique_names(alone, 4));

  // Ranks that share a layer read the same samples: the others shard.
  std::vector<std::string> with_tensor = alone;
  with_tensor.insert(
      with_tensor.end(),
      {R"(model={"name": "vit_tiny", "heads": 4, "num_classes": 10})", "parallel.tensor=2"});
  for (const std::string& name : technique_names(with_tensor, 2)) {
    CAPTURE(name);
    CHECK(name.find("shard") == std::string::npos);
  }
  const Recipe shared = parse_recipe(minimal_recipe(), "r.json", with_tensor);
  int sharded = 0;
  for (const Technique& one : techniques(shared, 4)) {
    const Recipe changed = parse_recipe(to_json(shared), "r.json", one.overrides);
    CHECK(changed.parallel.shard <= 2);
    sharded += changed.parallel.shard == 2 ? 1 : 0;
  }
  CHECK(sharded > 0);

  for (const char* batch : {R"(batch={"global": 64, "per_device": 8})",
                            R"(batch={"accumulate": 8, "per_device": 8})"}) {
    const Recipe recipe = parse_recipe(minimal_recipe(), "r.json", {batch});
    for (const Technique& one : techniques(recipe)) {
      const Recipe changed = parse_recipe(to_json(recipe), "r.json", one.overrides);
      CHECK(divide_batch(changed.batch, 1).global == 64);
    }
  }
}

TEST_CASE("half of the activations is a budget for recomputation, from a megabyte on") {
  const Recipe recipe = parse_recipe(minimal_recipe(), "r.json", {"recompute=all"});
  CHECK_FALSE(half_of_activations(recipe, 1'999'999).has_value());
  const std::optional<Technique> half = half_of_activations(recipe, 7'000'000);
  REQUIRE(half.has_value());
  CHECK(half->name == "recompute to 3 MB");
  const Recipe changed = parse_recipe(to_json(recipe), "r.json", half->overrides);
  CHECK(changed.recompute->budget_mb == 3);
}

TEST_CASE("a language model's loss is taken in chunks too") {
  const std::vector<std::string> tokens{
      R"(model={"name": "gpt2", "vocab_size": 11, "positions": 8})",
      R"(data={"train": {"tokens": "a.bin"}, "context": 8})", "batch.per_device=4"};
  const Recipe recipe = parse_recipe(minimal_recipe(), "r.json", tokens);
  const std::vector<Technique> all = techniques(recipe);
  CHECK(all.at(7).name == "loss in 8 chunks");
  CHECK(all.at(7).overrides == std::vector<std::string>{"loss.chunk=4"});
  CHECK(all.back().name == "bf16 + recompute all + loss in 8 chunks + accumulate x4");
}

}  // namespace scaletrain::recipe
