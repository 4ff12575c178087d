#include "lib/recipe/schema/json_text.h"

#include <doctest/doctest.h>

#include <string>

#include "lib/core/error.h"

namespace scaletrain::recipe {
namespace {

constexpr const char* kSyntaxRemedy =
    "\n  recipes are JSON in UTF-8; comments (// and /* */) and trailing commas are allowed, NaN "
    "and single quotes are not";

std::shared_ptr<const SourceText> source() {
  auto result = std::make_shared<SourceText>();
  result->name = "r.json";
  return result;
}

Node parse(const std::string& text) { return parse_json_text(text, source()); }

// The whole text of the error.
std::string parse_error(const std::string& text) {
  try {
    (void)parse(text);
  } catch (const core::RecipeError& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("a comma before the end of a list or object is skipped, and nowhere else") {
  const Node tree = parse(
      "{\"a\": [1, 2, ], // ,]\n \"b\": {\"c\": \",]\", /* , */ },\n \"d\": \"\\\",}\",\n}\n");
  CHECK(tree.member("a")->array()->size() == 2);
  CHECK(*tree.member("b")->member("c")->text() == ",]");
  CHECK(*tree.member("d")->text() == "\",}");
  for (const char* const text : {"[,]", "{,}", "[1,,]", "{\"a\":,}", "[1,", "{\"a\": 1},"}) {
    CAPTURE(text);
    CHECK(parse_error(text) != "no error");
  }
}

TEST_CASE("every key and value knows its line, before and after comments") {
  const Node tree = parse(
      "// a comment\n"
      "{\n"
      "  \"a\":\n"
      "    1\n"
      "  ,\n"
      "  \"b\": [true,\n"
      "    2.5], /* two\n"
      "  lines */ \"c\": {\n"
      "    \"d\": \"x\"}, \"e\": 7\n"
      "}\n");
  CHECK(tree.line == 2);
  CHECK(tree.member("a")->key_line == 3);
  CHECK(tree.member("a")->line == 4);
  CHECK(tree.member("b")->line == 6);
  CHECK(tree.member("b")->array()->at(0).line == 6);
  CHECK(tree.member("b")->array()->at(1).line == 7);
  CHECK(tree.member("c")->key_line == 8);
  CHECK(tree.member("c")->line == 8);
  CHECK(tree.member("c")->member("d")->line == 9);
  CHECK(tree.member("e")->line == 9);  // the newline after a number is read with it
  CHECK(tree.member("f") == nullptr);
}

TEST_CASE("values keep their kind") {
  const Node tree =
      parse(R"({"i": 9223372036854775807, "n": -0.5, "t": "é", "z": null, "f": false})");
  CHECK(tree.member("i")->shown() == "9223372036854775807");
  CHECK(tree.member("n")->shown() == "-0.5");
  CHECK(tree.member("t")->shown() == "\"é\"");
  CHECK(tree.member("z")->shown() == "null");
  CHECK(tree.member("f")->shown() == "false");
  CHECK(tree.shown() == "an object");
}

TEST_CASE("a byte order mark is allowed and does not move the lines") {
  CHECK(parse("\xEF\xBB\xBF{\n\"a\": 1}").member("a")->line == 2);
}

TEST_CASE("a name twice in one object is reported with both lines") {
  CHECK(parse_error("{\"a\": 1,\n\"b\": 2,\n\"a\": 3}") ==
        "r.json:3: \"a\" occurs twice in one object, first on line 1\n  keep one of them");
}

TEST_CASE("numbers beyond 64 bits are refused, not rounded") {
  const std::string tail = " does not fit in 64 bits\n  use a smaller number";
  CHECK(parse_error("{\n\"a\": 9223372036854775808}") == "r.json:2: 9223372036854775808" + tail);
  CHECK(parse_error("{\"a\": 18446744073709551616}") == "r.json:1: 18446744073709551616" + tail);
  CHECK(parse_error("{\"a\": -9223372036854775809}") == "r.json:1: -9223372036854775809" + tail);
  CHECK(parse_error("{\"a\":\n1e400}") == "r.json:2: '1e400'" + tail);
}

TEST_CASE("text that is not JSON is reported with its line") {
  CHECK(parse_error("{\"a\": 1,\n,}") ==
        std::string("r.json:2: not JSON: syntax error while parsing object key - unexpected ','; "
                    "expected string literal") +
            kSyntaxRemedy);
  CHECK(parse_error("{\"a\": NaN}") ==
        std::string("r.json:1: not JSON: syntax error while parsing value - invalid literal") +
            kSyntaxRemedy);
  CHECK(parse_error("{\"a\": 1} x") ==
        std::string("r.json:1: not JSON: syntax error while parsing value - invalid literal") +
            kSyntaxRemedy);
  CHECK(parse_error("{\n\"a\": \"\xff\"}") ==
        std::string(
            "r.json:2: not JSON: syntax error while parsing value - invalid string: ill-formed "
            "UTF-8 byte") +
            kSyntaxRemedy);
}

TEST_CASE("empty text and text that ends too soon are reported") {
  CHECK(parse_error("") == "r.json: is empty\n  write a recipe; recipes/ has examples");
  CHECK(parse_error(" \n") == "r.json: is empty\n  write a recipe; recipes/ has examples");
  CHECK(parse_error("{\"a\":\n[1,") ==
        std::string("r.json:2: not JSON: syntax error while parsing value - unexpected end of "
                    "input; expected '[', '{', or a literal") +
            kSyntaxRemedy);
}

TEST_CASE("64 levels are read, 65 are refused") {
  CHECK(parse_error(std::string(64, '[') + std::string(64, ']')) == "no error");
  CHECK(parse_error(std::string(65, '[') + std::string(65, ']')) ==
        "r.json:1: more than 64 levels of lists and objects\n  no recipe needs them");
  CHECK(parse_error(std::string(1000000, '[')) ==
        "r.json:1: more than 64 levels of lists and objects\n  no recipe needs them");
}

TEST_CASE("a file of very many values is refused before it takes much memory") {
  std::string many = "[0";
  for (std::size_t i = 0; i < kMaxValues; ++i) many += ",0";
  CHECK(parse_error(many + "]") == "r.json:1: more than 300000 values\n  no recipe needs them");
  std::string empty = "[[]";
  for (std::size_t i = 0; i < kMaxValues; ++i) empty += ",[]";
  CHECK(parse_error(empty + "]") == "r.json:1: more than 300000 values\n  no recipe needs them");
}

TEST_CASE("any prefix of a recipe and any changed byte give a tree or a RecipeError") {
  const std::string whole =
      "\xEF\xBB\xBF/* c */ {\"a\": [1, -2.5e3, \"x\\u00e9\\n\", {}], // d\n \"b\": true}";
  for (std::size_t i = 0; i < whole.size(); ++i) {
    (void)parse_error(whole.substr(0, i));
    for (int byte = 0; byte < 256; ++byte) {
      std::string changed = whole;
      changed[i] = static_cast<char>(byte);
      (void)parse_error(changed);  // anything but a RecipeError ends the test
    }
  }
  CHECK(parse_error(whole) == "no error");
}

}  // namespace scaletrain::recipe
