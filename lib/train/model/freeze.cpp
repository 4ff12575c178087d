#include "lib/train/model/freeze.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "lib/core/error.h"
#include "lib/core/text/glob.h"
#include "lib/train/rules/parameter_rules.h"

namespace scaletrain::train {
namespace {

void freeze_by_name(nn::Model& model, const std::vector<std::string>& patterns) {
  const auto parameters = model.named_parameters();
  for (const std::string& pattern : patterns)
    refuse_idle("/model/freeze", pattern, parameters.keys());
  for (const auto& item : parameters) {
    if (core::matches_any(patterns, item.key())) item.value().set_requires_grad(false);
  }
}

void freeze_all_but_head(const std::string& name, nn::Model& model) {
  const std::string head = model.weight_rules().head;
  if (head.empty()) {
    throw core::RecipeError("/model/linear_probe", fmt::format("{} does not define a head", name),
                            "name the parameters to freeze in /model/freeze");
  }
  for (const auto& item : model.named_parameters()) {
    item.value().set_requires_grad(item.key().starts_with(head + "."));
  }
}

}  // namespace

void freeze(const recipe::Model& recipe, nn::Model& model) {
  if (recipe.linear_probe) freeze_all_but_head(recipe.name, model);
  freeze_by_name(model, recipe.freeze);
  const std::vector<at::Tensor> parameters = model.parameters();
  if (std::none_of(parameters.begin(), parameters.end(),
                   [](const at::Tensor& parameter) { return parameter.requires_grad(); })) {
    throw core::RecipeError("/model/freeze", "every parameter is frozen",
                            "leave some of them to train");
  }
  model.train();
}

std::map<std::string, double> lr_scales(double layer_decay, nn::Model& model) {
  if (layer_decay == 1) return {};
  const std::vector<std::vector<std::string>> layers = model.layers();
  if (layers.size() < 2) {
    throw core::RecipeError("/optimizer/layer_decay", "the model is one layer", "leave it out");
  }
  std::map<std::string, double> scales;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const double scale = std::pow(layer_decay, static_cast<double>(layers.size() - 1 - i));
    for (const std::string& name : layers[i]) scales.emplace(name, scale);
  }
  return scales;
}

}  // namespace scaletrain::train
