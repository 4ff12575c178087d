#include "lib/recipe/sections/loss.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <string>
#include <vector>

#include "lib/recipe/load.h"
#include "tests/recipe/recipe_support.h"

namespace scaletrain::recipe {

TEST_CASE("a loss may have a weight for each class") {
  const Recipe recipe = parse_recipe(minimal_recipe(), "r.json",
                                     {"model.num_classes=3", "loss.class_weights=[1, 0, 2.5]"});
  CHECK(recipe.loss.class_weights == std::vector<double>{1, 0, 2.5});
  CHECK(parse_recipe(to_json(recipe), "r.json").loss.class_weights == recipe.loss.class_weights);
  CHECK(parse_recipe(minimal_recipe(), "r.json").loss.class_weights.empty());
  struct Case {
    const char *weights, *error;
  };
  for (const Case& item : {
           Case{"[1, 2]",
                "has 2 numbers, and the model 3 classes\n"
                "  write one number for each class"},
           Case{"[0, 0, 0]",
                "is 0 for every class\n"
                "  leave it out"},
           Case{"[]",
                "has 0 numbers\n"
                "  use a list of numbers of at least 0"},
           Case{"3",
                "3 is not a list\n"
                "  use a list of numbers of at least 0"},
       }) {
    CHECK(error_of(minimal_recipe(),
                   {"model.num_classes=3", fmt::format("loss.class_weights={}", item.weights)}) ==
          fmt::format("--set loss.class_weights: {}", item.error));
  }
}

TEST_CASE("a task has losses that it can be learned by") {
  CHECK(parse_recipe(minimal_recipe(), "r.json", {"loss=focal"}).loss.name == "focal");
  const std::vector<std::string> tokens{
      R"(model={"name": "gpt2", "vocab_size": 11, "positions": 8})",
      R"(data={"train": {"tokens": "a.bin"}})"};
  std::vector<std::string> other = tokens, weighed = tokens;
  other.emplace_back("loss=focal");
  weighed.emplace_back("loss.class_weights=[1]");
  CHECK(error_of(minimal_recipe(), other) ==
        "--set loss: focal does not go with language_modelling\n"
        "  use cross_entropy");
  CHECK(error_of(minimal_recipe(), weighed) ==
        "--set loss.class_weights: weighs classes, and these are tokens\n"
        "  leave it out");
}

TEST_CASE("a loss may take tokens in chunks, and images not") {
  const std::vector<std::string> tokens{
      R"(model={"name": "gpt2", "vocab_size": 11, "positions": 8})",
      R"(data={"train": {"tokens": "a.bin"}, "context": 8})", "loss.chunk=64"};
  CHECK(parse_recipe(minimal_recipe(), "r.json", tokens).loss.chunk == 64);
  CHECK(error_of(minimal_recipe(), {"loss.chunk=64"}) ==
        "--set loss.chunk: is a number of tokens, and these are images\n"
        "  leave it out");
}

}  // namespace scaletrain::recipe
