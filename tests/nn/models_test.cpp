#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "lib/nn/model.h"
#include "tests/nn/recipes.h"

namespace scaletrain::nn {
namespace {

std::vector<std::string> model_names() {
  return {
#define SCALETRAIN_MODEL(name, ...) #name,
#include "lib/recipe/models.def"
  };
}

bool equal_parameters(const Model& a, const Model& b) {
  const auto left = a.named_parameters(), right = b.named_parameters();
  if (left.keys() != right.keys()) return false;
  return std::all_of(left.begin(), left.end(), [&](const auto& item) {
    return at::equal(item.value(), *right.find(item.key()));
  });
}

}  // namespace

TEST_CASE("every row of models.def makes a model that maps images to logits") {
  for (const std::string& name : model_names()) {
    CAPTURE(name);
    const auto model = make_model(model_recipe(name), 32, 1);
    model->eval();
    const at::Tensor logits = model->forward(torch::zeros({2, 3, 32, 32}));
    CHECK(logits.sizes() == at::IntArrayRef({2, 10}));
    CHECK(logits.isfinite().all().item<bool>());
  }
}

TEST_CASE("every file in lib/nn/models has its row in models.def") {
  const auto names = model_names();
  const auto folder = std::filesystem::path(__FILE__).parent_path() / "../../lib/nn/models";
  std::set<std::string> stems;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    stems.insert(entry.path().stem().string());
  }
  // resnet.cpp makes the family resnet18, resnet34 and resnet50.
  for (const std::string& stem : stems) {
    CAPTURE(stem);
    CHECK(std::any_of(names.begin(), names.end(), [&](const auto& name) {
      return name == stem || (stem == "resnet" && name.starts_with(stem));
    }));
  }
  CHECK(stems.contains("resnet"));
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

TEST_CASE("making a model leaves the process's generator as it was") {
  torch::manual_seed(5);
  const at::Tensor expected = torch::rand({4});
  torch::manual_seed(5);
  make_model(model_recipe("mlp"), 8, 1);
  CHECK(at::equal(torch::rand({4}), expected));
}

TEST_CASE("every parameter of every model takes part in the loss") {
  for (const std::string& name : model_names()) {
    CAPTURE(name);
    const auto model = make_model(model_recipe(name), 32, 1);
    model->forward(torch::randn({2, 3, 32, 32})).square().sum().backward();
    for (const auto& parameter : model->named_parameters()) {
      CAPTURE(parameter.key());
      CHECK(parameter.value().grad().defined());
    }
  }
}

TEST_CASE("a model that no row names is a mistake of the programmer") {
  CHECK_THROWS_WITH_AS(make_model(model_recipe("resnet19"), 32, 1),
                       "no model is called \"resnet19\"", std::logic_error);
}

}  // namespace scaletrain::nn
