#include "lib/recipe/schema/type.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <string>

namespace scaletrain::recipe {

TEST_CASE("the schema of an enumeration lists its values with their help texts, if any has one") {
  const NamedValues explained{{"a", "First."}, {"b", ""}};
  CHECK(enum_schema(explained).dump() == R"({"enum":["a","b"],"enumDescriptions":["First.",""]})");
  const NamedValues plain{"a", "b"};
  CHECK(enum_schema(plain).dump() == R"({"enum":["a","b"]})");
}

TEST_CASE("a key chosen from values has their help texts") {
  std::string value;
  const TypePtr type = choice(value, {{"stop", "Ends the run."}, {"continue", "Goes on."}});
  CHECK(type->values().size() == 2);
  CHECK(type->values()[1] == NamedValue("continue", "Goes on."));
  CHECK(type->phrase() == R"(one of: "stop", "continue")");
}

}  // namespace scaletrain::recipe
