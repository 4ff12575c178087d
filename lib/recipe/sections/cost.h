// Rates for the cost and the carbon emissions of a run (lib/observe/devices/run_energy.h).
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "lib/recipe/sections/section.h"

namespace scaletrain::recipe {

// Mean carbon intensity of a region's electricity generation in one year.
struct CarbonRegion {
  std::string_view name, place;  // ISO 3166 code, and the name for help texts
  double g_per_kwh = 0;          // grams of CO2 equivalents, rounded
  int year = 0;
};

// Source of the rows below.
inline constexpr std::string_view kCarbonSource =
    "Ember, Yearly Electricity Data (2025), by Our World in Data";

// Taken from ourworldindata.org/grapher/carbon-intensity-electricity, data set of 2025.
inline constexpr std::array kCarbonRegions{
    CarbonRegion{"AU", "Australia", 552, 2024},      CarbonRegion{"AT", "Austria", 103, 2024},
    CarbonRegion{"BE", "Belgium", 118, 2024},        CarbonRegion{"BR", "Brazil", 103, 2024},
    CarbonRegion{"CA", "Canada", 175, 2024},         CarbonRegion{"CH", "Switzerland", 37, 2024},
    CarbonRegion{"CN", "China", 560, 2024},          CarbonRegion{"DE", "Germany", 344, 2024},
    CarbonRegion{"DK", "Denmark", 143, 2024},        CarbonRegion{"ES", "Spain", 146, 2024},
    CarbonRegion{"FI", "Finland", 72, 2024},         CarbonRegion{"FR", "France", 44, 2024},
    CarbonRegion{"GB", "United Kingdom", 211, 2024}, CarbonRegion{"IE", "Ireland", 280, 2024},
    CarbonRegion{"IN", "India", 708, 2024},          CarbonRegion{"IT", "Italy", 288, 2024},
    CarbonRegion{"JP", "Japan", 482, 2024},          CarbonRegion{"KR", "South Korea", 414, 2024},
    CarbonRegion{"NL", "Netherlands", 253, 2024},    CarbonRegion{"NO", "Norway", 31, 2024},
    CarbonRegion{"PL", "Poland", 615, 2024},         CarbonRegion{"SE", "Sweden", 36, 2024},
    CarbonRegion{"SG", "Singapore", 499, 2024},      CarbonRegion{"TW", "Taiwan", 636, 2024},
    CarbonRegion{"US", "United States", 384, 2024},  CarbonRegion{"ZA", "South Africa", 709, 2024},
    CarbonRegion{"world", "the world", 473, 2024},
};

struct Cost {
  std::optional<double> price{};      // of a device and hour, in any currency
  std::optional<double> kwh_price{};  // of a kWh, in the same currency
  std::optional<double> g_per_kwh{};  // carbon intensity of the electricity
  std::string region{};               // a name of kCarbonRegions; "": none

  // Carbon intensity from g_per_kwh or the region; nullopt: neither is given.
  std::optional<double> carbon_intensity() const;
};

TypePtr describe(std::optional<Cost>& value);

}  // namespace scaletrain::recipe
