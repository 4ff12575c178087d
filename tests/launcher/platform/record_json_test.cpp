#include "launcher/platform/record_json.h"

#include <doctest/doctest.h>

namespace scaletrain::launcher {
namespace {

enum class Colour { kRed, kBlue };

struct Wheel {
  double size = 0;
};

struct Cart {
  std::string name{};
  Colour colour = Colour::kRed;
  Wheel spare{};
  std::vector<Wheel> wheels{};
  std::optional<int> seats{};
  std::optional<Wheel> steering{};
  std::string note{};
  std::optional<Wheel> fifth{};
};

void each_field(Is<Wheel> auto& wheel, const auto& field) { field("size", wheel.size); }

void each_field(Is<Cart> auto& cart, const auto& field) {
  field("name", cart.name);
  field("colour", cart.colour);
  field("spare", cart.spare);
  field("wheels", cart.wheels);
  field("seats", cart.seats);
  field("steering", cart.steering);
  field.if_any("note", cart.note);
  field.if_any("fifth", cart.fifth);
}

using Json = nlohmann::ordered_json;

TEST_CASE("a record is an object with its fields in their order, and is read by the same names") {
  const Cart cart{.name = "a",
                  .colour = Colour::kBlue,
                  .spare = {.size = 0.5},
                  .wheels = {{.size = 1}, {.size = 2}},
                  .seats = 3,
                  .steering = {},
                  .note = "",
                  .fifth = Wheel{.size = 5}};
  const Json json = json_of<Json>(cart);
  CHECK(json.dump() ==
        R"({"name":"a","colour":1,"spare":{"size":0.5},"wheels":[{"size":1.0},{"size":2.0}],)"
        R"("seats":3,"steering":null,"fifth":{"size":5.0}})");
  const Cart read = record_of<Cart>(json);
  CHECK(json_of<Json>(read).dump() == json.dump());
  CHECK(read.colour == Colour::kBlue);
  REQUIRE(read.wheels.size() == 2);
  CHECK(read.wheels[1].size == 2);
  CHECK(read.seats == 3);
  CHECK_FALSE(read.steering.has_value());
  CHECK(read.note.empty());
}

TEST_CASE("a field that is missing or of another type is no record, but where it may be left out") {
  const Json whole = json_of<Json>(Cart{});
  for (const auto& field : whole.items()) {
    const std::string& name = field.key();
    Json part = whole;
    part.erase(name);
    CAPTURE(name);
    CHECK_THROWS_AS(record_of<Cart>(part), Json::exception);
    part[name] = Json::array({"x"});
    CHECK_THROWS_AS(record_of<Cart>(part), Json::exception);
  }
  CHECK_FALSE(whole.contains("note"));
  CHECK_NOTHROW(record_of<Cart>(whole));
}

TEST_CASE("read_known takes what is there, and no other type") {
  Cart cart{.name = "a", .seats = 3};
  read_known(Json{{"name", "b"}, {"strange", 1}}, cart);
  CHECK(cart.name == "b");
  CHECK(cart.seats == 3);
  read_known(Json{{"seats", nullptr}}, cart);
  CHECK_FALSE(cart.seats.has_value());
  CHECK_THROWS_AS(read_known(Json{{"name", 1}}, cart), Json::exception);
  CHECK_THROWS_AS(read_known(Json::array(), cart), Json::exception);
  CHECK_THROWS_AS(read_known(Json{{"wheels", {{{"no size", 1}}}}}, cart), Json::exception);
}

}  // namespace
}  // namespace scaletrain::launcher
