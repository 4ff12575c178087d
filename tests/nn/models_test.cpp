#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "lib/core/error.h"
#include "lib/nn/model.h"
#include "tests/nn/recipes.h"

namespace scaletrain::nn {
namespace {

std::vector<std::string> all_names() {
  return {
#define SCALETRAIN_MODEL(name, ...) #name,
#include "lib/recipe/catalog/models.def"
  };
}

// Without torchscript, which needs a file (models/torchscript_test.cpp).
std::vector<std::string> model_names() {
  std::vector<std::string> names = all_names();
  std::erase(names, "torchscript");
  return names;
}

std::int64_t count_parameters(const Model& model) {
  std::int64_t count = 0;
  for (const at::Tensor& parameter : model.parameters()) count += parameter.numel();
  return count;
}

// Those whose numbers are computed here: the larger members of a family differ in sizes alone, but
// for those with other blocks.
std::vector<std::string> small_names() {
  std::vector<std::string> names = model_names();
  std::erase_if(names, [](const std::string& name) {
    if (name == "resnet50" || name == "convnext_tiny") return false;
    return count_parameters(*make_blank_model(model_recipe(name), 32)) > 12'000'000;
  });
  return names;
}

bool equal_parameters(const Model& a, const Model& b) {
  const auto left = a.named_parameters(), right = b.named_parameters();
  if (left.keys() != right.keys()) return false;
  return std::all_of(left.begin(), left.end(), [&](const auto& item) {
    return at::equal(item.value(), *right.find(item.key()));
  });
}

}  // namespace

TEST_CASE("every row of models.def makes a model") {
  for (const std::string& name : model_names()) {
    CAPTURE(name);
    CHECK(make_blank_model(model_recipe(name), 32) != nullptr);
  }
}

TEST_CASE("a model of 1,000 classes has as many parameters as its source's") {
  std::size_t published = 0;
  for (const recipe::Row& row : recipe::models().rows) {
    if (!row.published) continue;
    const std::string name = row.name;
    CAPTURE(name);
    recipe::Model recipe;
    recipe::choose(recipe, row);
    recipe.num_classes = 1000;
    if (name == "vit_tiny") recipe.options["patch_size"] = std::int64_t{16};
    CHECK(count_parameters(*make_blank_model(recipe, 224)) == row.published->parameters);
    ++published;
  }
  CHECK(published == 19);
}

TEST_CASE("a model maps its input to logits, and every parameter has a value") {
  for (const std::string& name : small_names()) {
    CAPTURE(name);
    const auto model = make_model(model_recipe(name), 32, 1);
    model->eval();
    const at::Tensor logits = model->forward(model_input(name));
    CHECK(logits.size(0) == 2);
    CHECK(logits.size(-1) == 10);
    CHECK(logits.isfinite().all().item<bool>());
    for (const auto& parameter : model->named_parameters()) {
      CAPTURE(parameter.key());
      CHECK(parameter.value().isfinite().all().item<bool>());  // every one is initialised
    }
  }
}

TEST_CASE(
    "the same seed makes the same parameters whatever was drawn before, another seed others") {
  for (const char* name : {"resnet18", "vit_tiny", "mlp"}) {
    CAPTURE(name);
    const auto first = make_model(model_recipe(name), 32, 7);
    torch::rand({3});
    CHECK(equal_parameters(*first, *make_model(model_recipe(name), 32, 7)));
    CHECK_FALSE(equal_parameters(*first, *make_model(model_recipe(name), 32, 8)));
  }
}

TEST_CASE(
    "what a parameter starts from is a function of seed and name, whatever else is in a model") {
  const auto small = make_model(model_recipe("resnet18"), 32, 7)->named_parameters();
  const auto large = make_model(model_recipe("resnet34"), 32, 7)->named_parameters();
  for (const char* name : {"conv1.weight", "layer1.0.conv2.weight", "layer4.1.conv1.weight"}) {
    CAPTURE(name);
    CHECK(at::equal(small[name], large[name]));
  }
  CHECK_FALSE(at::equal(small["layer1.0.conv1.weight"], small["layer1.0.conv2.weight"]));
}

TEST_CASE("the units of every model name all of its tensors, and nothing else") {
  for (const std::string& name : model_names()) {
    CAPTURE(name);
    const auto model = make_blank_model(model_recipe(name), 32);
    std::set<std::string> named, expected, units;
    for (const units::Unit& unit : model->units()) {
      CHECK(units.insert(unit.name).second);
      CHECK_FALSE(unit.tensors.empty());
      named.insert(unit.tensors.begin(), unit.tensors.end());
    }
    CHECK(units.size() > 1);
    for (const auto& item : model->named_parameters()) expected.insert(item.key());
    for (const auto& item : model->named_buffers()) expected.insert(item.key());
    CHECK((named == expected));
  }
}

TEST_CASE("a model has as many units as its row says, whatever its keys are") {
  for (const std::string& name : model_names()) {
    CAPTURE(name);
    recipe::Model recipe = model_recipe(name);
    const auto as_declared = [&] {
      const auto model = make_blank_model(recipe, 32);
      return recipe::units_of(recipe) == static_cast<std::int64_t>(model->units().size());
    };
    CHECK(as_declared());
    for (const char* const key : {"depth", "layers"}) {
      if (!recipe.options.contains(key)) continue;
      recipe.options[key] = std::int64_t{5};
      CHECK(as_declared());
    }
  }
}

TEST_CASE("a unit that runs again with the generator as it was gives the same, dropout included") {
  for (const std::string& name : small_names()) {
    CAPTURE(name);
    recipe::Model recipe = model_recipe(name);
    for (const char* key : {"dropout", "drop_path"}) {
      if (recipe.options.contains(key)) recipe.options[key] = 0.5;
    }
    const auto model = make_model(recipe, 32, 1);
    torch::manual_seed(2);
    units::Flow flow = {model_input(name)};
    for (const units::Unit& unit : model->units()) {
      CAPTURE(unit.name);
      torch::manual_seed(3);
      const units::Flow first = unit.run(flow, {});
      torch::manual_seed(3);
      CHECK(at::equal(first[0], unit.run(flow, {.again = true})[0]));
      flow = first;
    }
    CHECK(flow[0].size(-1) == 10);
  }
}

TEST_CASE("a unit that says that it never draws leaves the generator as it was") {
  torch::manual_seed(3);
  const at::Tensor expected = torch::rand({4});
  for (const double dropout : {0.0, 0.5}) {
    CAPTURE(dropout);
    recipe::Model recipe = model_recipe("mlp");
    recipe.options["dropout"] = dropout;
    const auto model = make_model(recipe, 32, 1);
    units::Flow flow = {model_input("mlp")};
    for (const units::Unit& unit : model->units()) {
      CAPTURE(unit.name);
      torch::manual_seed(3);
      flow = unit.run(flow, {});
      CHECK(unit.draws == !at::equal(torch::rand({4}), expected));
    }
  }
}

TEST_CASE("making a model leaves the process's generator as it was") {
  torch::manual_seed(5);
  const at::Tensor expected = torch::rand({4});
  torch::manual_seed(5);
  make_model(model_recipe("mlp"), 8, 1);
  CHECK(at::equal(torch::rand({4}), expected));
}

TEST_CASE("every parameter of every model takes part in the loss") {
  for (const std::string& name : small_names()) {
    CAPTURE(name);
    const auto model = make_model(model_recipe(name), 32, 1);
    model->forward(model_input(name)).square().sum().backward();
    for (const auto& parameter : model->named_parameters()) {
      CAPTURE(parameter.key());
      CHECK(parameter.value().grad().defined());
    }
  }
}

TEST_CASE("a parameter that no layer has and no rule fills is a mistake of the programmer") {
  const auto model = make_model(model_recipe("mlp"), 8, 1);
  const at::Tensor logical = at::empty({2});
  CHECK_THROWS_WITH_AS(
      model->Model::initialise("scale", logical, at::detail::createCPUGenerator(1)),
      "model: nothing fills the parameter scale\n  its model's initialise() must",
      core::InternalError);
}

TEST_CASE("a model without a row is an internal error") {
  CHECK_THROWS_WITH_AS(make_model(model_recipe("resnet19"), 32, 1),
                       "no model is called \"resnet19\"", std::logic_error);
}

TEST_CASE("what a model says of weights names tensors of its own, of the shapes that it says") {
  std::set<std::string> with_head;
  for (const std::string& name : model_names()) {
    CAPTURE(name);
    const auto model = make_blank_model(model_recipe(name), 32);
    const units::WeightRules rules = model->weight_rules();
    const auto parameters = model->named_parameters();
    if (!rules.head.empty()) {
      with_head.insert(name);
      CHECK(parameters[rules.head + ".weight"].size(0) == 10);
      CHECK(parameters[rules.head + ".bias"].size(0) == 10);
    }
    if (!rules.input.empty()) CHECK(parameters[rules.input].size(1) == 3);
    if (!rules.positions.empty()) CHECK(parameters[rules.positions].size(0) == 8);
    if (!rules.patch_positions.empty()) {
      const std::int64_t positions = parameters[rules.patch_positions].size(1);
      const std::int64_t side = 32 / model_recipe(name).integer("patch_size");
      CHECK(positions == side * side + rules.first_tokens);
    }
    for (const auto& item : rules.also_called) {
      CHECK(parameters.contains(item.second));
      CHECK_FALSE(parameters.contains(item.first));
    }
  }
  for (const char* const name : {"resnet50", "vit_base", "convnext_tiny", "mobilenet_v3_small"}) {
    CHECK(with_head.contains(name));
  }
}

TEST_CASE("every tensor of a model is in a layer, and the head is in the last") {
  for (const std::string& name : model_names()) {
    CAPTURE(name);
    const auto model = make_blank_model(model_recipe(name), 32);
    const std::vector<std::vector<std::string>> layers = model->layers();
    std::set<std::string> seen;
    for (const auto& layer : layers) {
      CHECK_FALSE(layer.empty());
      seen.insert(layer.begin(), layer.end());
    }
    for (const std::string& parameter : model->named_parameters().keys()) {
      CAPTURE(parameter);
      CHECK(seen.contains(parameter));
    }
    const std::string head = model->weight_rules().head + ".weight";
    CHECK(std::count(layers.back().begin(), layers.back().end(), head) ==
          (head == ".weight" ? 0 : 1));
  }
}

}  // namespace scaletrain::nn
