#include "lib/recipe/sections/cost.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "lib/recipe/load.h"
#include "tests/recipe/recipe_support.h"

namespace scaletrain::recipe {

TEST_CASE("the carbon intensity is g_per_kwh or that of the region, and there is no default") {
  CHECK_FALSE(parse_recipe(minimal_recipe(), "r.json").cost.has_value());
  const auto intensity = [](const char* cost) {
    return parse_recipe(minimal_recipe(), "r.json", {cost}).cost->carbon_intensity();
  };
  CHECK(intensity("cost.g_per_kwh=41.5") == 41.5);
  CHECK(intensity("cost.g_per_kwh=0") == 0);
  CHECK(intensity("cost.region=FR") == 44);
  CHECK(intensity("cost.region=world") == 473);
  CHECK(intensity("cost.price=2") == std::nullopt);
}

TEST_CASE("an intensity and a region exclude each other, and rates are not negative") {
  CHECK(error_of(minimal_recipe(), {R"(cost={"g_per_kwh": 40, "region": "FR"})"}) ==
        "--set cost: /cost/region: excludes \"g_per_kwh\"\n"
        "  use one of: \"g_per_kwh\", \"region\"; null removes an inherited key");
  CHECK(error_of(minimal_recipe(), {"cost.price=-1"}) ==
        "--set cost.price: -1 is out of range\n"
        "  use a number from 0 to 1000000000");
}

TEST_CASE("each region has a name of its own, a figure and a year") {
  std::set<std::string_view> names;
  for (const CarbonRegion& region : kCarbonRegions) {
    CAPTURE(region.name);
    CHECK(names.insert(region.name).second);
    CHECK(region.g_per_kwh > 20);   // Norway has 31
    CHECK(region.g_per_kwh < 800);  // coal alone: about 1,000
    CHECK(region.year == 2024);
  }
}

}  // namespace scaletrain::recipe
