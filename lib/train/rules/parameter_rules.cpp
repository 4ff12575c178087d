#include "lib/train/rules/parameter_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "lib/core/error.h"
#include "lib/core/text/glob.h"
#include "lib/core/text/lookup.h"

namespace scaletrain::train {

void refuse_idle(const std::string& pointer, const std::string& pattern,
                 const std::vector<std::string>& names) {
  const auto fits = [&](const std::string& name) { return core::matches(pattern, name); };
  if (std::any_of(names.begin(), names.end(), fits)) return;
  const std::string near = core::did_you_mean(pattern, names);
  throw core::RecipeError(
      pointer, fmt::format("no parameter matches \"{}\"", pattern),
      near.empty() ? fmt::format("use names as \"{}\", with * for any characters", names.front())
                   : near);
}

void apply_groups(const std::vector<recipe::OptimizerGroup>& groups,
                  std::vector<units::NamedParameter>& parameters) {
  std::vector<std::string> names;
  names.reserve(parameters.size());
  for (const units::NamedParameter& parameter : parameters) names.push_back(parameter.name);
  std::vector<bool> is_taken(parameters.size(), false);
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const recipe::OptimizerGroup& group = groups[i];
    const std::string pointer = fmt::format("/optimizer/groups/{}/match", i);
    refuse_idle(pointer, group.match, names);
    bool is_used = false;
    for (std::size_t j = 0; j < parameters.size(); ++j) {
      if (is_taken[j] || !core::matches(group.match, names[j])) continue;
      is_taken[j] = is_used = true;
      parameters[j].lr_scale *= group.lr_scale;
      parameters[j].weight_decay = group.weight_decay;
    }
    if (is_used) continue;
    throw core::RecipeError(
        pointer,
        fmt::format("every parameter that matches \"{}\" belongs to an earlier group", group.match),
        "put this group before the other, or leave it out");
  }
}

std::set<std::string> outer_parameters(nn::Model& model) {
  const std::vector<std::vector<std::string>> layers = model.layers();
  std::set<std::string> result(layers.front().begin(), layers.front().end());
  const std::string head = model.weight_rules().head;
  if (head.empty()) {
    result.insert(layers.back().begin(), layers.back().end());
    return result;
  }
  for (const auto& item : model.named_parameters()) {
    if (item.key().starts_with(head + ".")) result.insert(item.key());
  }
  return result;
}

}  // namespace scaletrain::train
