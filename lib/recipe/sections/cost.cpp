#include "lib/recipe/sections/cost.h"

#include <fmt/format.h>

#include <algorithm>

#include "lib/recipe/schema/object.h"

namespace scaletrain::recipe {
namespace {

TypePtr rate(std::optional<double>& value) {
  return optional(value, [](double& inner) { return number(inner, from(0).to(1e9)); });
}

NamedValues region_names() {
  NamedValues names;
  for (const CarbonRegion& region : kCarbonRegions) {
    names.emplace_back(
        std::string(region.name),
        fmt::format("{}, {:.0f} g/kWh in {}.", region.place, region.g_per_kwh, region.year));
  }
  return names;
}

}  // namespace

std::optional<double> Cost::carbon_intensity() const {
  if (g_per_kwh) return g_per_kwh;
  const auto* const found = std::ranges::find(kCarbonRegions, region, &CarbonRegion::name);
  return found == kCarbonRegions.end() ? std::nullopt : std::optional(found->g_per_kwh);
}

TypePtr describe(std::optional<Cost>& value) {
  return optional(value, [](Cost& inner) {
    auto keys = std::make_unique<Object>();
    keys->add("price", rate(inner.price),
              "Price of one device for one hour, in any currency, as `scaletrain plan --price`. "
              "Default: none. For example 2.5.")
        .add("kwh_price", rate(inner.kwh_price),
             "Price of one kWh, in the same currency, as `scaletrain plan --kwh-price`. Only "
             "measured energy counts. Default: none. For example 0.25.")
        .add("g_per_kwh", rate(inner.g_per_kwh),
             "Carbon intensity of the electricity, in grams of CO2 equivalents per kWh. Your "
             "provider's figure is better than the mean of a region. Default: none. For example "
             "380.")
        .add("region", choice(inner.region, region_names()),
             fmt::format("Region whose mean carbon intensity is used instead of g_per_kwh. Source: "
                         "{}.",
                         kCarbonSource))
        .at_most_one({"g_per_kwh", "region"});
    return keys;
  });
}

}  // namespace scaletrain::recipe
