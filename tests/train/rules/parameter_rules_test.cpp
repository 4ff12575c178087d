#include "lib/train/rules/parameter_rules.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include "lib/core/error.h"
#include "lib/recipe/catalog/lists.h"

namespace scaletrain::train {
namespace {

std::vector<units::NamedParameter> four() {
  std::vector<units::NamedParameter> result;
  for (const char* const name : {"fc1.weight", "fc1.bias", "head.weight", "head.bias"}) {
    result.push_back({.name = name, .tensor = at::zeros({2}), .lr_scale = 0.5});
  }
  return result;
}

std::string refusal_of(const std::vector<std::string>& patterns) {
  std::vector<recipe::OptimizerGroup> groups(patterns.size());
  for (std::size_t i = 0; i < patterns.size(); ++i) groups[i].match = patterns[i];
  auto parameters = four();
  try {
    apply_groups(groups, parameters);
  } catch (const core::RecipeError& error) {
    return error.what();
  }
  return "";
}

std::shared_ptr<nn::Model> model_of(const char* name, std::int64_t layers) {
  recipe::Model model;
  model.num_classes = 3;
  recipe::choose(model, *recipe::models().find(name));
  for (const char* const key : {"layers", "depth"}) {
    if (model.options.contains(key)) model.options[key] = layers;
  }
  return nn::make_blank_model(model, 224);
}

}  // namespace

TEST_CASE("a parameter belongs to the first group that it fits, with its rate and weight decay") {
  auto parameters = four();
  apply_groups({{.match = "*.bias", .lr_scale = 4, .weight_decay = 0.25},
                {.match = "head.*", .lr_scale = 0.1, .weight_decay = {}}},
               parameters);
  CHECK(parameters[0].lr_scale == 0.5);
  CHECK_FALSE(parameters[0].weight_decay.has_value());
  CHECK(parameters[1].lr_scale == 2);  // 0.5, of its layer, times 4
  CHECK(parameters[1].weight_decay == 0.25);
  CHECK(parameters[2].lr_scale == doctest::Approx(0.05));
  CHECK_FALSE(parameters[2].weight_decay.has_value());
  CHECK(parameters[3].lr_scale == 2);  // "head.*" comes behind "*.bias"
}

TEST_CASE("a group that gets no parameter is refused") {
  CHECK(refusal_of({"fc1.*", "head.wieght"}) ==
        "/optimizer/groups/1/match: no parameter matches \"head.wieght\"\n"
        "  did you mean \"head.weight\"?");
  CHECK(refusal_of({"blocks.*"}) ==
        "/optimizer/groups/0/match: no parameter matches \"blocks.*\"\n"
        "  use names as \"fc1.weight\", with * for any characters");
  CHECK(refusal_of({"*", "*.bias"}) ==
        "/optimizer/groups/1/match: every parameter that matches \"*.bias\" belongs to an earlier "
        "group\n  put this group before the other, or leave it out");
}

TEST_CASE("hidden is what lies between the first layer and the head") {
  using Names = std::set<std::string>;
  CHECK((outer_parameters(*model_of("mlp", 3)) ==
         Names{"fc1.weight", "fc1.bias", "head.weight", "head.bias"}));
  const Names vit = outer_parameters(*model_of("vit_tiny", 1));
  CHECK(vit.contains("patch_embed.proj.weight"));
  CHECK(vit.contains("pos_embed"));
  CHECK(vit.contains("head.weight"));
  CHECK_FALSE(vit.contains("norm.weight"));
  CHECK_FALSE(vit.contains("blocks.0.attn.qkv.weight"));
  // Without a name for its head, the last layer is it; here that is tied to the first.
  const Names gpt2 = outer_parameters(*model_of("gpt2", 1));
  CHECK((gpt2 == Names{"wte.weight", "wpe.weight", "ln_f.weight", "ln_f.bias"}));
}

}  // namespace scaletrain::train
