#include "lib/exchange/foreign_config.h"

#include <doctest/doctest.h>

#include "lib/core/error.h"

using namespace scaletrain;  // NOLINT(google-build-using-namespace)
using exchange::ForeignConfig;

namespace {

template <class Call>
std::string refusal(const Call& call) {
  try {
    call();
  } catch (const core::CheckpointError& error) {
    return error.place() + " " + error.found();
  }
  return "";
}

}  // namespace

TEST_CASE(
    "values of a foreign config are read with their types, and what is absent has a default") {
  const auto json = nlohmann::json::parse(
      R"({"n": 3, "x": 0.5, "on": true, "name": "a", "none": null, "in": {"m": 4}})");
  const ForeignConfig config(json, "config.json");
  CHECK(config.integer("n") == 3);
  CHECK(config.integer("absent", 7) == 7);
  CHECK(config.integer("none", 7) == 7);
  CHECK(config.number("x", 1) == 0.5);
  CHECK(config.number("n", 1) == 3);
  CHECK(config.number("absent", 1) == 1);
  CHECK(config.flag("on", false));
  CHECK(config.flag("absent", true));
  CHECK(config.text("name") == "a");
  CHECK(config.text("absent", "b") == "b");
  CHECK(config.inner("in").integer("m") == 4);
  CHECK(config.inner("absent").integer("m", 5) == 5);
  CHECK(config.has("n"));
  CHECK(!config.has("none"));
  CHECK(config.place() == "config.json");
  CHECK(config.object() == json);
  config.allow("n", {1, 3});
  config.allow("absent", {1});
}

TEST_CASE("a value that our models cannot take is refused by its place") {
  const auto json = nlohmann::json::parse(R"({"n": "three", "in": {"m": 4, "x": true}})");
  const ForeignConfig config(json, "config.json");
  CHECK(refusal([&] { config.integer("n"); }) ==
        R"(config.json: /n is "three", and a whole number is needed)");
  CHECK(refusal([&] { config.number("n", 1); }) ==
        R"(config.json: /n is "three", and a number is needed)");
  CHECK(refusal([&] { config.flag("n", true); }) ==
        R"(config.json: /n is "three", and true or false is needed)");
  CHECK(refusal([&] { config.text("in"); }) ==
        R"(config.json: /in is {"m":4,"x":true}, and a text is needed)");
  CHECK(refusal([&] { config.text("absent"); }) ==
        "config.json: /absent is missing, and a value is needed");
  CHECK(refusal([&] { config.inner("n"); }) ==
        R"(config.json: /n is "three", and an object is needed)");
  CHECK(refusal([&] {
          config.inner("in").allow("m", {1, "two"});
        }) == R"(config.json: /in/m is 4, and 1 or "two" is needed)");
  CHECK(refusal([&] { config.inner("in").refuse("m", "less"); }) ==
        "config.json: /in/m is 4, and less is needed");
}
