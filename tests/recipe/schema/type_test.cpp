#include "lib/recipe/schema/type.h"

#include <doctest/doctest.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "lib/core/error.h"
#include "lib/recipe/schema/json_text.h"
#include "lib/recipe/schema/problems.h"

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

TEST_CASE("names and texts are read from one text or a list of texts, and from nothing else") {
  const auto read = [](Type& type, const std::string& json) {
    const auto source =
        std::make_shared<const SourceText>(SourceText{.name = "r.json", .pointer = ""});
    Problems problems;
    type.read(parse_json_text(json, source), "/key", problems);
    std::string error;
    try {
      problems.throw_if_any();
    } catch (const core::RecipeError& caught) {
      error = caught.what();
    }
    return error;
  };
  std::vector<std::string> chosen, plain;
  const TypePtr name_list = names(chosen, {"a", "b"});
  const TypePtr text_list = texts(plain, "a path");
  CHECK(read(*name_list, R"("b")").empty());
  CHECK(chosen == std::vector<std::string>{"b"});
  CHECK(read(*name_list, R"(["b", "a"])").empty());
  CHECK(chosen == std::vector<std::string>{"b", "a"});
  CHECK(read(*text_list, R"("x")").empty());
  CHECK(plain == std::vector<std::string>{"x"});
  CHECK(read(*text_list, R"(["x", "x"])").empty());
  CHECK(plain == std::vector<std::string>{"x", "x"});
  CHECK(read(*name_list, "7") ==
        "r.json:1: /key: 7 is not a text or a list\n"
        "  use one of: \"a\", \"b\", or a list of them");
  CHECK(read(*text_list, "7") ==
        "r.json:1: /key: 7 is not a text or a list\n  use a path, or a list of them");
  CHECK(read(*text_list, R"(["x", 7])") ==
        "r.json:1: /key/1: 7 is not a text\n  use a path, or a list of them");
}

}  // namespace scaletrain::recipe
