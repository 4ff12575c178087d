#include "lib/engine/stages.h"

#include <fmt/format.h>

#include <utility>

#include "lib/core/error.h"
#include "lib/core/plan/stage_division.h"

namespace scaletrain::engine {

namespace {

std::vector<std::size_t> divide(const std::vector<units::Unit>& units,
                                const std::vector<double>& costs, int stages) {
  const auto count = static_cast<std::size_t>(stages);
  if (count > units.size()) {
    throw core::RecipeError(
        "/parallel/pipeline",
        fmt::format("{} stages of a model that has {} units", count, units.size()),
        fmt::format("use at most {} stages", units.size()));
  }
  return core::divide_into_stages(costs, count);
}

}  // namespace

Stages::Stages(const std::vector<units::Unit>& units, const std::vector<double>& costs, int stages)
    : Stages(units, divide(units, costs, stages)) {}

Stages::Stages(const std::vector<units::Unit>& units, std::vector<std::size_t> begins)
    : begins_(std::move(begins)) {
  begins_.push_back(units.size());
  for (int stage = 0; stage < count(); ++stage) {
    for (std::size_t unit = begin(stage); unit < end(stage); ++unit) {
      for (const std::string& name : units[unit].tensors) {
        std::vector<int>& users = tensors_[name];
        if (users.empty() || users.back() != stage) users.push_back(stage);
      }
    }
  }
}

std::vector<double> parameter_costs(const std::vector<units::Unit>& units, const nn::Model& model) {
  const auto parameters = model.named_parameters();
  std::vector<double> costs(units.size(), 0.0);
  for (std::size_t unit = 0; unit < units.size(); ++unit) {
    for (const std::string& name : units[unit].tensors) {
      const at::Tensor* const found = parameters.find(name);
      if (found != nullptr) costs[unit] += static_cast<double>(found->numel());
    }
  }
  return costs;
}

}  // namespace scaletrain::engine
