#include "lib/recipe/ranks.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "lib/core/error.h"
#include "lib/recipe/load.h"
#include "tests/recipe/recipe_support.h"

namespace scaletrain::recipe {
namespace {

int least_ranks(const std::vector<std::string>& changes) {
  return ranks_of_copy(parse_recipe(minimal_recipe(), "r.json", changes));
}

}  // namespace

TEST_CASE(
    "a copy of the model needs the ranks of its mesh, and experts the copies that hold them") {
  const std::string model = R"(model={"name": "mixtral"})";
  const std::string data = R"(data={"train": {"tokens": "a.bin"}})";
  CHECK(least_ranks({}) == 1);
  CHECK(least_ranks({"parallel.replica=3"}) == 3);
  CHECK(least_ranks({model, data, "parallel.tensor=2", "parallel.context=2"}) == 4);
  CHECK(least_ranks({model, data, "parallel.expert=4", "parallel.shard=2"}) == 4);
}

TEST_CASE("a global batch without a micro-batch that the model can train on is refused") {
  // Each of 3 ranks has one sample, and mixup needs pairs.
  const Recipe recipe = parse_recipe(
      minimal_recipe(), "r.json",
      {R"(batch={"per_device": "auto", "global": 3, "memory_mb": 100})", "mix.mixup=0.2"});
  CHECK_THROWS_WITH_AS(static_cast<void>(plan_batch(recipe, 3)),
                       "/batch/global: 3 gives 3 ranks no micro-batch that the model can train on, "
                       "or of pairs\n  use a multiple of 6",
                       core::RecipeError);
}

TEST_CASE("a batch that is to be found has an end on a CPU") {
  const std::vector<std::string> open{R"(batch={"per_device": "auto", "global": 8})", "device=cpu"};
  CHECK(error_of(minimal_recipe(), open) ==
        "--set batch: /batch/per_device: \"auto\" has no end on a CPU, which shares its memory\n"
        "  add \"memory_mb\": N, what the tensors of a rank may take");
  CHECK(error_of(minimal_recipe(), {open[0]}) == "no error");
}

}  // namespace scaletrain::recipe
