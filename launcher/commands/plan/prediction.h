// Predicts memory, time and cost of a recipe on devices that need not exist, from the layout that
// its worker reports (app/worker/layout_command.h) and the table of devices.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "launcher/plan/memory_fit.h"
#include "launcher/plan/run_cost.h"
#include "launcher/plan/step_time.h"

namespace scaletrain::recipe {
struct Recipe;
}

namespace scaletrain::launcher {

// Target of a plan: devices, nodes and prices.
struct PlanTarget {
  std::string device = "cpu";  // this machine, or a name of lib/observe/device_kinds.h
  int nproc = 1, nodes = 1;
  double network_gb_s = 50;  // of a device to other nodes, in one direction
  double storage_gb_s = 2;   // writes of a checkpoint
  std::optional<double> price{}, price_of_kwh{};

  int ranks() const { return nproc * nodes; }
  bool is_cpu() const { return device == "cpu"; }
};

struct Prediction {
  MemoryFit memory{};  // of the rank that needs most
  bool memory_was_measured = false;
  StepTime time{};  // of the slowest rank
  RunCost cost{};
  SavePlan saves{};
  double mtbf_hours = 0;
  std::int64_t steps = 0;  // 0: unknown
  std::int64_t global_batch = 0;
  std::optional<double> mfu{};  // share of the device's peak
  std::vector<std::string> notes{};
};

// Steps of a run that `probe` measured on this machine; 0: not measured.
struct ProbedStep {
  double seconds = 0;
  std::vector<MemoryShare> memory{};  // peak bytes by kind
};

// Asks the worker of `recipe` for its layout. Throws core::RecipeError and core::UsageError for a
// recipe that a launch would refuse on these ranks.
nlohmann::ordered_json ask_layout_of(const recipe::Recipe& recipe, const PlanTarget& target);

// Predicts from a `layout` that the worker described.
Prediction predict(const recipe::Recipe& recipe, const PlanTarget& target,
                   const nlohmann::ordered_json& layout, const ProbedStep& probed = {});

}  // namespace scaletrain::launcher
