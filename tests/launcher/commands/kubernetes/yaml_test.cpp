#include "launcher/commands/kubernetes/yaml.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <string>

namespace scaletrain::launcher {
namespace {

using Json = nlohmann::ordered_json;

std::string value(const std::string& text) { return to_yaml(Json{{"k", text}}).substr(3); }

TEST_CASE("objects and lists are blocks") {
  const Json json{
      {"kind", "Job"},
      {"spec", {{"nodes", 4}, {"fine", true}, {"list", {1, "two"}}}},
      {"rules", Json::array({{{"a", 1}, {"b", {{"c", 2}}}}, {{"d", Json::array({3})}}})}};
  CHECK(to_yaml(json) ==
        "kind: Job\n"
        "spec:\n"
        "  nodes: 4\n"
        "  fine: true\n"
        "  list:\n"
        "    - 1\n"
        "    - two\n"
        "rules:\n"
        "  - a: 1\n"
        "    b:\n"
        "      c: 2\n"
        "  - d:\n"
        "      - 3\n");
}

TEST_CASE("text that could be something else is quoted") {
  CHECK(value("batch/v1") == "batch/v1\n");
  CHECK(value("/data") == "/data\n");
  for (const char* text : {"",   "true", "No",   "y",     "null",
                           "1",  "1e3",  "0x1f", "12:30", "-",
                           "~",  "a: b", "a #b", " a",    "nvidia.com/gpu: 1",
                           "*a", "&a",   "{}",   "--set", ".5",
                           "@a", "a,b",  "="}) {
    CAPTURE(text);
    CHECK(value(text) == "\"" + std::string(text) + "\"\n");
  }
}

TEST_CASE("in quotes nothing is left that a reader would change") {
  CHECK(value("a\"b\\c\n") == "|\n  a\"b\\c\n");  // a line is a block
  CHECK(value("a\"b\\c\nd") == "\"a\\\"b\\\\c\\nd\"\n");
  CHECK(value("\x01\x7f") == "\"\\u0001\\x7f\"\n");
  CHECK(value("\xc2\x85\xe2\x80\xa8\xef\xbb\xbf") == "\"\\x85\\u2028\\ufeff\"\n");
  CHECK(value("\xc3\xa9\xf0\x9f\x98\x80") == "\"\xc3\xa9\xf0\x9f\x98\x80\"\n");
  CHECK_THROWS_AS(value("\xff"), nlohmann::json::exception);
}

TEST_CASE("a file's lines stay lines") {
  CHECK(to_yaml(Json{{"f", "{\n  \"a\": 1\n\n}\n"}}) == "f: |\n  {\n    \"a\": 1\n\n  }\n");
  CHECK(value("a\n\n") == "|+\n  a\n\n");
  CHECK(value(" a\n") == "\" a\\n\"\n");
  CHECK(value("\ta\n") == "\"\\ta\\n\"\n");
}

}  // namespace
}  // namespace scaletrain::launcher
