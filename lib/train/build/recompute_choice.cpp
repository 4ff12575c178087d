#include "lib/train/build/recompute_choice.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "lib/core/log.h"

namespace scaletrain::train {
namespace {

constexpr double kMegabyte = 1e6;  // as people count the memory of a device

using Names = std::vector<std::string>;

// Returns the choice of units by name; nullopt if the model lacks one of them.
std::optional<std::vector<bool>> chosen_by_name(const engine::Engine& engine, const Names& names) {
  std::vector<bool> chosen;
  chosen.reserve(engine.units().size());
  for (const units::Unit& unit : engine.units()) {
    chosen.push_back(std::find(names.begin(), names.end(), unit.name) != names.end());
  }
  const auto found = std::count(chosen.begin(), chosen.end(), true);
  if (static_cast<std::size_t>(found) != names.size() || (found > 0 && chosen.back())) {
    return std::nullopt;
  }
  return chosen;
}

// Measures with a batch that training then reads again.
std::vector<engine::UnitCost> measure(Run& run) {
  data::BatchStream& stream = *run.sets.train.stream;
  const data::Batch batch = *stream.next();  // training has no end
  std::vector<engine::UnitCost> costs =
      run.engine->measure_units(run.task->prepare(batch, /*training=*/true));
  stream.seek({run.state.epoch, run.state.step_in_epoch});
  return costs;
}

Names choose(Run& run, std::int64_t budget_mb) {
  const std::vector<engine::UnitCost> costs = measure(run);
  const auto budget = static_cast<std::int64_t>(static_cast<double>(budget_mb) * kMegabyte);
  const std::vector<bool> again = engine::within_budget(costs, budget);
  Names names;
  for (std::size_t i = 0; i < costs.size(); ++i) {
    if (again[i]) names.push_back(costs[i].name);
  }
  const std::string text =
      run.group->broadcast_text(fmt::format("{}", fmt::join(names, "\n")), 0, "recomputed units");
  if (run.group->rank() == 0) {
    const std::int64_t peak = engine::peak_bytes(costs, again);
    core::log("recompute: {} of {} units are recomputed{}{}: activations take {:.1f} of {} MB",
              names.size(), costs.size(), names.empty() ? "" : ", ", fmt::join(names, " "),
              static_cast<double>(peak) / kMegabyte, budget_mb);
    if (peak > budget) {
      core::warn("/recompute/budget_mb: {} is too small for this recipe; lower /batch/per_device",
                 budget_mb);
    }
  }
  Names of_all;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) of_all.push_back(std::move(line));
  return of_all;
}

}  // namespace

void choose_recomputed(Run& run) {
  format::TrainState& state = run.state;
  const std::int64_t before = std::exchange(state.recompute_budget_mb, 0);
  Names names = std::exchange(state.recomputed_units, {});
  if (!run.recipe.recompute || !run.recipe.recompute->budget_mb) return;
  state.recompute_budget_mb = *run.recipe.recompute->budget_mb;
  std::optional<std::vector<bool>> chosen;
  if (before == state.recompute_budget_mb) chosen = chosen_by_name(*run.engine, names);
  if (!chosen) {
    names = choose(run, state.recompute_budget_mb);
    chosen = chosen_by_name(*run.engine, names);
  }
  run.engine->set_recomputed(*std::move(chosen));
  state.recomputed_units = std::move(names);
}

}  // namespace scaletrain::train
