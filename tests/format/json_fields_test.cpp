#include "lib/format/json_fields.h"

#include <doctest/doctest.h>

#include "lib/core/error.h"
#include "tests/format/checkpoint_support.h"

using namespace scaletrain;          // NOLINT(google-build-using-namespace)
using namespace scaletrain::format;  // NOLINT(google-build-using-namespace)

namespace {

std::string parse_error(const std::string& text) {
  return test::message_of<core::CheckpointError>([&] { parse_object(text, "a.json"); });
}

template <class Ask>
std::string field_error(const std::string& text, const Ask& ask) {
  const nlohmann::json json = parse_object(text, "a.json");
  return test::message_of<core::CheckpointError>([&] {
    JsonFields fields(json, "a.json");
    ask(fields);
  });
}

constexpr const char* kJsonRemedy =
    "\n  the file is damaged or was changed by hand: use another copy";

}  // namespace

TEST_CASE("an object is parsed strictly") {
  CHECK(parse_object(R"({"a":{"b":1},"c":{"b":2}})", "a.json").at("c").at("b") == 2);
  CHECK(parse_error("{\"a\":1") == std::string("a.json: is not JSON at its byte 7") + kJsonRemedy);
  CHECK(parse_error("[]") == std::string("a.json: is not a JSON object") + kJsonRemedy);
  CHECK(parse_error("{\"a\": NaN}") ==
        std::string("a.json: is not JSON: NaN at its byte 7, which JSON does not have") +
            kJsonRemedy);
  CHECK(parse_error("{\"a\": -Infinity}") ==
        std::string("a.json: is not JSON: Infinity at its byte 8, which JSON does not have") +
            kJsonRemedy);
  CHECK(parse_error("version https://git-lfs.github.com/spec/v1\n")
            .starts_with("a.json: is a git-lfs pointer"));
  CHECK(parse_error("{} {}") == std::string("a.json: is not JSON at its byte 4") + kJsonRemedy);
  CHECK(parse_error(R"({"a":1,"b":{"a":1},"a":2})") ==
        std::string("a.json: has the key \"a\" twice") + kJsonRemedy);
  CHECK(parse_error(R"({"a":1e400})") ==
        std::string("a.json: holds a number that is too large") + kJsonRemedy);
  CHECK(parse_error(std::string(100'000, '[')) ==
        std::string("a.json: is nested too deeply") + kJsonRemedy);
}

TEST_CASE("fields have their type and range") {
  const std::string text =
      R"({"whole":7,"minus":-1,"fraction":8.7,"huge":18446744073709551615,"text":"x"})";
  const nlohmann::json json = parse_object(text, "a.json");
  JsonFields fields(json, "a.json");
  CHECK(fields.integer("whole", 7) == 7);
  CHECK(fields.integer("minus") == -1);
  CHECK(fields.number("fraction") == doctest::Approx(8.7));
  CHECK(fields.number("whole") == doctest::Approx(7));
  CHECK(fields.text("text") == "x");
  CHECK(field_error(text, [](JsonFields& f) { f.integer("minus", 0); }) ==
        "a.json: /minus: is -1\n  a whole number from 0 is allowed here");
  CHECK(field_error(text, [](JsonFields& f) { f.integer("fraction"); }) ==
        "a.json: /fraction: is 8.7\n  a whole number is allowed here");
  CHECK(field_error(text, [](JsonFields& f) { f.integer("huge"); }) ==
        "a.json: /huge: is 18446744073709551615\n  a whole number is allowed here");
  CHECK(field_error(text, [](JsonFields& f) { f.integer("text"); }) ==
        "a.json: /text: is \"x\"\n  a whole number is allowed here");
  CHECK(field_error(text, [](JsonFields& f) { f.number("text"); }) ==
        "a.json: /text: is \"x\"\n  a number is allowed here");
  CHECK(field_error(text, [](JsonFields& f) { f.text("whole"); }) ==
        "a.json: /whole: is 7\n  text is allowed here");
  CHECK(field_error(text, [](JsonFields& f) { f.value("other"); }) ==
        std::string("a.json: /other: is missing") + kJsonRemedy);
}

TEST_CASE("a key that nobody asked for is an error") {
  CHECK(field_error(R"({"a":1})", [](JsonFields& fields) {
          fields.integer("a");
          fields.done();
        }) == "nothing was thrown");
  CHECK(field_error(R"({"a":1,"b":2})", [](JsonFields& fields) {
          fields.integer("a");
          fields.done();
        }) == std::string("a.json: /b: is not a key of this format") + kJsonRemedy);
  const nlohmann::json list = nlohmann::json::array();
  CHECK(test::message_of<core::CheckpointError>([&] { JsonFields(list, "a.json", "/files"); }) ==
        std::string("a.json: /files: is not an object") + kJsonRemedy);
}
