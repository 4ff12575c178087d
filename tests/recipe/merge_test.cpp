#include "lib/recipe/merge.h"

#include <doctest/doctest.h>

#include "lib/recipe/load.h"
#include "tests/recipe/recipe_support.h"
#include "tests/temporary_folder.h"

using namespace scaletrain::recipe;  // NOLINT(google-build-using-namespace)

TEST_CASE("one of several keys takes the place of the others, unless it is removed") {
  const Recipe steps = parse_recipe(minimal_recipe(), "r.json", {"steps=30"});
  CHECK(steps.length.value == 30);
  CHECK(steps.length.unit == Duration::Unit::kSteps);
  const Recipe same = parse_recipe(minimal_recipe(), "r.json", {"steps=30", "epochs=null"});
  CHECK(differing_keys(steps, same).empty());
}

TEST_CASE("a key of a recipe that extends another is merged too, and a short form is expanded") {
  const scaletrain::test::TemporaryFolder folder;
  (void)folder.write("base.json", minimal_recipe());
  const auto extended = [&](const std::string& changes) {
    return folder.write("r.json", "{\"extends\": \"base.json\", " + changes + "}");
  };
  const Recipe steps = load_recipe(extended(R"("steps": 30)"));
  CHECK(steps.length.unit == Duration::Unit::kSteps);
  CHECK(steps.length.value == 30);
  CHECK(load_error_of(extended(R"("steps": 30, "epochs": 2)")).find("excludes \"epochs\"") !=
        std::string::npos);

  (void)folder.write("base.json", minimal_recipe("\"loss\": \"cross_entropy\""));
  const Recipe loss = load_recipe(extended(R"("loss": {"label_smoothing": 0.1})"));
  CHECK(loss.loss.name == "cross_entropy");
}
