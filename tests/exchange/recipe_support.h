// Recipes and configs of other libraries for tests.
#pragma once

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>

#include "lib/recipe/load.h"

namespace scaletrain::test {

// A recipe of images of 32 pixels, its "model" and further keys of "data" as given.
inline recipe::Recipe image_recipe(const std::string& model, const std::string& data = "") {
  return recipe::parse_recipe(
      fmt::format(R"({{"model": {}, "data": {{"train": {{"shards": "/data/a.tar"}},
                      "image_size": 32{}}}, "steps": 1, "optimizer": {{"name": "sgd", "lr": 1}}}})",
                  model, data),
      "test.json");
}

inline recipe::Recipe token_recipe(const std::string& model,
                                   const std::string& tokens = "/data/a-000000.bin") {
  return recipe::parse_recipe(
      fmt::format(R"({{"model": {}, "data": {{"train": {{"tokens": "{}"}}}}, "steps": 1,
                      "optimizer": {{"name": "sgd", "lr": 1}}}})",
                  model, tokens),
      "test.json");
}

}  // namespace scaletrain::test
