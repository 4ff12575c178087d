#include "lib/recipe/catalog/catalog.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "lib/core/error.h"
#include "lib/recipe/catalog/row_keys.h"
#include "lib/recipe/load.h"
#include "tests/recipe/recipe_support.h"

namespace scaletrain::recipe {
namespace {

std::string error_of_row(const Row& row) {
  try {
    catalog_with({row});
  } catch (const core::UsageError& error) {
    return error.what();
  }
  return "no error";
}

std::string fault(const Row& row) {
  const std::string text = error_of_row(row);
  const std::string begin = "model " + row.name + ": ", end = "\n  change its row";
  return text.starts_with(begin) && text.ends_with(end)
             ? text.substr(begin.size(), text.size() - begin.size() - end.size())
             : text;
}

CatalogPtr own_catalog() {
  return catalog_with(
      {Row{"own",
           "help",
           {KEY_INT(width, 8, from(1).to(64), "help"), KEY_CHOICE(act, "help", "a", "b")}}});
}

std::string error_with_own(const std::string& model) {
  try {
    parse_recipe(minimal_recipe(), "r.json", {"model=" + model}, own_catalog());
  } catch (const core::RecipeError& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("a catalog has our models and the rows that are added") {
  const CatalogPtr catalog = own_catalog();
  CHECK(catalog->models.rows.size() == models().rows.size() + 1);
  CHECK(catalog->models.find("own") != nullptr);
  CHECK(catalog->models.find("mlp") != nullptr);
  CHECK(built_in_catalog()->models.find("own") == nullptr);
}

TEST_CASE("every row of models.def could be added under another name") {
  for (Row row : models().rows) {
    row.name = "own_" + row.name;
    CHECK_MESSAGE(error_of_row(row) == "no error", row.name);
  }
}

TEST_CASE("a row that cannot be is refused") {
  const auto number = KEY_NUM(x, 0.5, from(0).to(1), "");
  const auto whole = KEY_INT(n, 1, from(0).to(8), "");
  CHECK(error_of_row({"mlp", "", {}}) == "model mlp: exists already\n  change its row");
  CHECK(fault({"a b", "", {}}) == "is not a name of letters, digits and _");
  CHECK(fault({"m", "", {FOR_TASK(cooking)}}) == "has the task cooking, which does not exist");
  CHECK(fault({"m", "", {number, number}}) == "has a key \"x\", which is no name, or taken");
  CHECK(fault({"m", "", {KEY_FLAG(num_classes, true, "")}}) ==
        "has a key \"num_classes\", which is no name, or taken");
  CHECK(fault({"m", "", {KEY_INT(in_channels, 3, from(1).to(3), "")}}) ==
        "has a key \"in_channels\", which is no name, or taken");
  CHECK(fault({"m", "", {KEY_INT(n, 9, from(0).to(8), "")}}) ==
        "has a default of \"n\" that is not allowed");
  CHECK(fault({"m", "", {KEY_NUM(x, 2.0, from(0).to(1), "")}}) ==
        "has a default of \"x\" that is not allowed");
  CHECK(fault({"m", "", {number, KEY_DIVIDES(x, n)}}) ==
        "needs an integer key \"n\", which it has not");
  CHECK(fault({"m", "", {whole, KEY_DIVIDES(n, n)}}) == "divides by \"n\", which may be 0");
  CHECK(fault({"m", "", {whole, KEY_DIVIDES_INTO_EVEN(n, n)}}) ==
        "divides by \"n\", which may be 0");
  CHECK(fault({"m", "", {whole, KEY_DIVIDES_IMAGE_SIZE(n)}}) == "divides by \"n\", which may be 0");
  CHECK(fault({"m", "", {number, KEY_AT_MOST(x, n)}}) ==
        "needs a number key \"n\", which it has not");
  CHECK(fault({"m", "", {number, KEY_NEEDS_ABOVE_ZERO(f, x)}}) ==
        "needs a flag \"f\", which it has not");
  CHECK(fault({"m", "", {whole, KEY_COVERS_IMAGE_SIZE(n)}}) ==
        "has a condition that is for transforms");
  CHECK(fault({"m", "", {whole, KEY_FITS_IMAGE_SIZE(n, many)}}) ==
        "has \"many\" times \"n\" in an image");
  CHECK(fault({"m", "", {HAS_UNITS_FIXED(ten)}}) == "has \"ten\" units");
  CHECK(fault({"m", "", {HAS_UNITS_FIXED(10000000000)}}) == "has \"10000000000\" units");
  CHECK(fault({"m", "", {HAS_UNITS_FIXED(0)}}) == "may have no unit");
  CHECK(fault({"m", "", {whole, HAS_UNITS(n, 0)}}) == "may have no unit");
  CHECK(fault({"m", "", {number, HAS_UNITS(x, 2)}}) ==
        "needs an integer key \"x\", which it has not");
  CHECK(error_of_row({"m", "", {whole, HAS_UNITS(n, 1)}}) == "no error");
  CHECK(error_of_row({"m", "", {KEY_INT(n, 1, above(0), ""), HAS_UNITS(n, 0)}}) == "no error");
  CHECK(fault({"m", "", {SEQUENCE_RANKS_SHARE}}) ==
        "has SEQUENCE_RANKS_SHARE without TENSOR_RANKS_SHARE");
  CHECK(fault({"m", "", {FOR_TASK(language_modelling)}}) ==
        "needs an integer key \"vocab_size\", which it has not");
}

TEST_CASE("a recipe's model is checked by the catalog it is read with") {
  CHECK(error_with_own(R"({"name": "own", "num_classes": 10, "width": 16})") == "no error");
  CHECK(error_with_own(R"({"name": "own", "num_classes": 10, "widht": 16})") ==
        "--set model: /model/widht: \"widht\" is not a key here\n  did you mean \"width\"?");
  CHECK(error_with_own(R"({"name": "own", "num_classes": 10, "width": 65})") ==
        "--set model: /model/width: 65 is out of range\n  use an integer from 1 to 64");
  CHECK(error_with_own(R"({"name": "own", "num_classes": 10, "width": "wide"})") ==
        "--set model: /model/width: \"wide\" is not an integer\n  use an integer from 1 to 64");
  CHECK(error_with_own(R"({"name": "own", "num_classes": 10, "act": "c"})") ==
        "--set model: /model/act: \"c\" is not a choice here\n  use one of: \"a\", \"b\"");
  CHECK(error_of(minimal_recipe(), {"model.name=own"})
            .starts_with("--set model.name: \"own\" is not a model\n"));
}

TEST_CASE("what is said of all recipes is said of those for the catalog") {
  const CatalogPtr catalog = own_catalog();
  CHECK(json_schema(catalog).find("\"own\"") != std::string::npos);
  CHECK(json_schema().find("\"own\"") == std::string::npos);
  CHECK(markdown_reference(catalog).find("### `own`") != std::string::npos);
  const auto has_width = [](const std::vector<std::string>& keys) {
    return std::find(keys.begin(), keys.end(), "model.width") != keys.end();
  };
  CHECK(has_width(all_keys(catalog)));
  CHECK_FALSE(has_width(all_keys()));
}

}  // namespace scaletrain::recipe
