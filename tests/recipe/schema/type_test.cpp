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

TEST_CASE("one name or several are chosen from values") {
  std::vector<std::string> value{"a"};
  const TypePtr type = names(value, {"a", "b"});
  CHECK(type->phrase() == "one of: \"a\", \"b\", or a list of them");
  CHECK(type->write().dump() == R"(["a"])");
  CHECK(type->schema().dump() ==
        R"({"anyOf":[{"enum":["a","b"]},)"
        R"({"type":"array","items":{"enum":["a","b"]},"uniqueItems":true}]})");
}

}  // namespace scaletrain::recipe
