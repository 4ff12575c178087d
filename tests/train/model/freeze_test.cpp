#include "lib/train/model/freeze.h"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>
#include <vector>

#include "lib/core/error.h"
#include "lib/recipe/catalog/lists.h"

namespace scaletrain::train {
namespace {

recipe::Model config(const std::string& name) {
  recipe::Model model;
  model.name = name;
  recipe::choose(model, *recipe::models().find(name));
  model.num_classes = 3;
  if (name == "mlp") model.options["hidden"] = std::int64_t{4};
  if (name == "gpt2") {
    model.num_classes = 0;
    for (const char* const key : {"vocab_size", "positions", "dim", "depth", "heads"}) {
      model.options[key] = std::int64_t{2};
    }
  }
  return model;
}

// Names of the parameters that are trained.
std::vector<std::string> trained(const nn::Model& model) {
  std::vector<std::string> names;
  for (const auto& item : model.named_parameters()) {
    if (item.value().requires_grad()) names.push_back(item.key());
  }
  return names;
}

std::vector<std::string> trained(const recipe::Model& model) {
  const auto made = nn::make_blank_model(model, 32);
  freeze(model, *made);
  return trained(*made);
}

std::string refusal(const recipe::Model& model) {
  try {
    trained(model);
  } catch (const core::RecipeError& error) {
    return error.what();
  }
  return "";
}

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("patterns freeze what they fit, and nothing without them") {
  recipe::Model model = config("mlp");
  CHECK((trained(model) ==
         Names{"fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias", "head.weight", "head.bias"}));
  model.freeze = {"fc1.*", "*.bias"};
  CHECK((trained(model) == Names{"fc2.weight", "head.weight"}));
}

TEST_CASE("a linear probe trains the head alone, which may be frozen in part") {
  for (const char* const name : {"mlp", "vit_tiny"}) {
    recipe::Model model = config(name);
    model.linear_probe = true;
    CHECK((trained(model) == Names{"head.weight", "head.bias"}));
    model.freeze = {"head.bias"};
    CHECK((trained(model) == Names{"head.weight"}));
  }
  recipe::Model resnet = config("resnet18");
  resnet.linear_probe = true;
  CHECK((trained(resnet) == Names{"fc.weight", "fc.bias"}));
}

TEST_CASE("a frozen BatchNorm is in evaluation mode, the others are not") {
  recipe::Model model = config("resnet18");
  model.freeze = {"conv1.*", "bn1.*", "layer1.*"};
  const auto made = nn::make_blank_model(model, 32);
  freeze(model, *made);
  const auto modules = made->named_modules("", false);
  CHECK_FALSE(modules["bn1"]->is_training());
  CHECK(modules["layer2.0.bn2"]->is_training());
  for (const bool trains : {true, false, true}) {
    made->train(trains);
    CHECK_FALSE(modules["bn1"]->is_training());
    CHECK_FALSE(modules["layer1.0.bn2"]->is_training());
    CHECK(modules["layer2.0.bn2"]->is_training() == trains);
  }
}

TEST_CASE("what freezes nothing, or everything, is refused") {
  recipe::Model model = config("mlp");
  model.freeze = {"fc1.*", "fc1.weigth"};
  CHECK(refusal(model) ==
        "/model/freeze: no parameter matches \"fc1.weigth\"\n  did you mean \"fc1.weight\"?");
  model.freeze = {"layer1.*"};
  CHECK(
      refusal(model) ==
      "/model/freeze: no parameter matches \"layer1.*\"\n  use names as \"fc1.weight\", with * for "
      "any characters");
  model.freeze = {"*"};
  CHECK(refusal(model) ==
        "/model/freeze: every parameter is frozen\n  leave some of them to train");
  recipe::Model headless = config("gpt2");
  headless.linear_probe = true;
  CHECK(refusal(headless) ==
        "/model/linear_probe: gpt2 does not define a head\n  name the parameters to freeze in "
        "/model/freeze");
}

TEST_CASE("learning rates fall by a power from the head to the input") {
  const auto mlp = nn::make_blank_model(config("mlp"), 8);
  CHECK(lr_scales(1, *mlp).empty());
  const auto scales = lr_scales(0.5, *mlp);
  CHECK(scales.at("head.bias") == 1);
  CHECK(scales.at("fc2.weight") == 0.5);
  CHECK(scales.at("fc1.weight") == 0.25);
  CHECK(scales.size() == 6);
  // A tied tensor is where it comes first: stem, two blocks, head.
  const auto gpt2 = nn::make_blank_model(config("gpt2"), 0);
  const auto of_text = lr_scales(0.5, *gpt2);
  CHECK(of_text.at("wte.weight") == 0.125);
  CHECK(of_text.at("ln_f.weight") == 1);
}

}  // namespace scaletrain::train
