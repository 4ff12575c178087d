#include "lib/recipe/catalog/task.h"

#include <doctest/doctest.h>

#include <set>

#include "lib/recipe/load.h"
#include "tests/recipe/recipe_support.h"

namespace scaletrain::recipe {

TEST_CASE("every task is found by its name, and its measures by theirs") {
  for (const TaskRow& row : tasks()) {
    CAPTURE(row.name);
    CHECK(find_task(row.name) == &row);
    REQUIRE(!row.measures.empty());
    std::set<std::string> names;
    for (const Measure& measure : row.measures) {
      CHECK(row.measure(measure.name) == &measure);
      CHECK(names.insert(measure.name).second);
    }
    CHECK(row.measure("loss") != nullptr);
    CHECK(row.measure("no such") == nullptr);
  }
  CHECK(find_task("no such") == nullptr);
}

TEST_CASE("a recipe's task is the model's, or a named one that reads the same") {
  const auto task_of = [](const std::vector<std::string>& overrides) {
    return parse_recipe(minimal_recipe(), "r.json", overrides).task;
  };
  CHECK(task_of({}) == "image_classification");
  CHECK(task_of({"task=image_classification"}) == "image_classification");
  CHECK(error_of(minimal_recipe(), {"task=language_modelling"}) ==
        "--set task: mlp does not learn language_modelling\n"
        "  use image_classification, or another model");
}

TEST_CASE("a measure knows what is better and how it is shown") {
  const Measure& top1 = *find_task("image_classification")->measure("top1");
  CHECK(top1.better_than(0.5, 0.4));
  CHECK(!top1.better_than(0.4, 0.4));
  CHECK(top1.text(0.98477) == "98.48 %");
  const Measure& loss = *find_task("language_modelling")->measure("loss");
  CHECK(loss.better_than(0.4, 0.5));
  CHECK(!loss.better_than(0.4, 0.4));
  CHECK(loss.text(0.08123) == "0.0812");
}

}  // namespace scaletrain::recipe
