// A prediction as text for a person and as JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "launcher/commands/plan/prediction.h"
#include "launcher/commands/plan/variants.h"

namespace scaletrain::launcher {

struct PlanReport {
  PlanTarget target{};
  Prediction prediction{};
  std::string accuracy{};  // "+- 6 % in 12 runs", or that the device has no score yet
  std::string heading{};   // of `changes`
  std::vector<RankedVariant> changes{};
};

std::string plan_text(const PlanReport& report);
nlohmann::ordered_json plan_json(const PlanReport& report);

}  // namespace scaletrain::launcher
