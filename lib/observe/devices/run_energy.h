// Energy, cost and carbon emissions of a run, from its device samples and the rates of the recipe.
//
// Energy that was not measured is nullopt, never 0, and never estimated from a power limit.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "lib/observe/devices/device_files.h"
#include "lib/recipe/sections/cost.h"

namespace scaletrain::observe {

struct RunEnergy {
  double device_hours = 0;  // ranks times the hours of their attempts
  // Measured energy. A GPU or node that several launchers sample counts once.
  std::optional<double> gpu_kwh{}, cpu_kwh{}, memory_kwh{};
  bool from_power = false;             // of a GPU without an energy counter: power was integrated
  std::vector<std::string> missing{};  // why energy of some devices was not measured

  std::optional<double> kwh() const;  // of all that was measured
};

RunEnergy run_energy(const std::filesystem::path& run);

struct RunBill {
  std::optional<double> devices{}, electricity{};  // money; nullopt: no rate, or not measured
  std::optional<double> carbon_g{};

  std::optional<double> money() const;
};

RunBill bill_of(const RunEnergy& energy, const std::optional<recipe::Cost>& rates);

// Rows of the closing summary, each with its newline; "" if nothing was measured and there are no
// rates:
//
//   energy       1.25 kWh: GPUs 1, CPUs 0.2, memory 0.05
//   cost         12.31: 4.92 device hours 12.00, electricity 0.31
//   carbon       55 g CO2e
std::string energy_text(const RunEnergy& energy, const std::optional<recipe::Cost>& rates);

// "55 g CO2e", or kilograms.
std::string carbon_text(double grams);

// {"device_hours", "kwh", "gpu_kwh", "cpu_kwh", "memory_kwh", "from_power", "missing", "cost",
// "device_cost", "electricity_cost", "carbon_g"}; null for what is not known.
nlohmann::ordered_json energy_json(const RunEnergy& energy,
                                   const std::optional<recipe::Cost>& rates);

}  // namespace scaletrain::observe
