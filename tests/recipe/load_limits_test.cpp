// Recipes that are damaged, wrong in many places or large.
#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <ctime>
#include <string>

#include "lib/core/philox.h"
#include "lib/recipe/load.h"
#include "tests/recipe/recipe_support.h"

namespace scaletrain::recipe {
namespace {

// The least of three times of this process (other programs do not count) to read a list of shards.
double seconds_to_read(int count) {
  std::string shards = "\"s0.tar\"";
  for (int i = 1; i < count; ++i) shards += ",\n\"s" + std::to_string(i) + ".tar\"";
  const std::string text = minimal_recipe("\"output\": \"o\"");
  const std::string large =
      std::string(text).replace(text.find("\"a.tar\""), 7, "[" + shards + "]");
  double least = 1e9;
  for (int round = 0; round < 3; ++round) {
    const std::clock_t start = std::clock();
    const Recipe recipe = parse_recipe(large, "r.json");
    least = std::min(least, static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC);
    CHECK(recipe.data.train.shards.size() == static_cast<std::size_t>(count));
  }
  return least;
}

}  // namespace

TEST_CASE("any changed bytes of a recipe give a recipe or a RecipeError") {
  const std::string whole = to_json(parse_recipe(
      minimal_recipe("\"schedule\": {\"warmup\": {\"steps\": 1}}, \"clip\": {\"norm\": 1}"),
      "r.json"));
  int wrong = 0;
  for (std::uint64_t number = 0; number < 3000; ++number) {
    core::Philox draws(1, core::DrawPurpose::kInit, 1, number);
    std::string changed = whole;
    for (std::uint64_t count = 1 + draws.below(3); count > 0; --count) {
      const std::size_t from = draws.below(whole.size());
      const std::size_t to = draws.below(whole.size());
      // A byte of the text itself makes more JSON than any byte would.
      changed[to] = whole[from];
    }
    if (error_of(changed) != "no error") ++wrong;  // another exception ends the test
  }
  CHECK(wrong > 1000);
}

TEST_CASE("a hundred mistakes are enough") {
  std::string keys = "\"k0\": 0";
  for (int i = 1; i < 50000; ++i) keys += ", \"k" + std::to_string(i) + "\": 0";
  const auto start = std::chrono::steady_clock::now();
  const std::string error = error_of(minimal_recipe(keys));
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(5));
  CHECK(error.ends_with("\nthese are the first 100 mistakes"));
}

TEST_CASE("the time to read a list of shards grows with its length") {
  const double growth = seconds_to_read(20000) / seconds_to_read(1000);
  CHECK(growth < 100);  // in proportion it is 20, with the square 400
}

}  // namespace scaletrain::recipe
