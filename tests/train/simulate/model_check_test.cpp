#include "lib/train/simulate/model_check.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "lib/core/error.h"
#include "lib/recipe/load.h"

namespace scaletrain::train::model_check_test {
namespace {

constexpr const char* kGpt = R"({
  "model": {"name": "gpt2", "vocab_size": 64, "positions": 16, "dim": 32, "depth": 2, "heads": 4,
            "dropout": 0},
  "data": {"train": {"tokens": "a.bin"}}, "batch": {"per_device": 4, "accumulate": 4},
  "optimizer": {"name": "adamw", "lr": 0.1}, "steps": 4, "threads": 1, "device": "cpu"})";
constexpr const char* kMlp = R"({
  "model": {"name": "mlp", "hidden": 20, "layers": 1, "num_classes": 3},
  "data": {"train": {"shards": "a.tar"}, "image_size": 8}, "batch": {"per_device": 4},
  "optimizer": {"name": "sgd", "lr": 0.1}, "steps": 4, "threads": 1})";

// What is found wrong; "" for a model that can be built.
std::string found(const char* text, const std::vector<std::string>& changes, int ranks = 1) {
  try {
    check_model(recipe::parse_recipe(text, "r.json", changes), ranks, nn::built_in_factories());
  } catch (const core::RecipeError& error) {
    return std::string(error.place()) + ": " + std::string(error.found());
  }
  return "";
}

}  // namespace

TEST_CASE("a model that can be built on its layout is no mistake") {
  CHECK(found(kMlp, {}).empty());
  CHECK(found(kGpt, {}).empty());
  CHECK(found(kGpt, {"parallel.tensor=2", "parallel.sequence=true"}, 2).empty());
  CHECK(found(kGpt, {"parallel.context=2"}, 2).empty());
  CHECK(found(kGpt, {"parallel.pipeline=2", "recompute.every=2"}, 2).empty());
  CHECK(found(kGpt, {"precision=fp8", "device=cuda"}).empty());  // looked at without the GPU
}

TEST_CASE("patterns that fit nothing, and layers that are not there, are found without data") {
  CHECK(found(kMlp, {R"(model.freeze=["encoder.*"])"}) ==
        "/model/freeze: no parameter matches \"encoder.*\"");
  CHECK(found(kMlp, {R"(optimizer.groups=[{"match": "encoder.*"}])"}) ==
        "/optimizer/groups/0/match: no parameter matches \"encoder.*\"");
  CHECK(found(kGpt, {R"(recompute={"match": ["block.*"]})"}) ==
        "/recompute/match: no unit is named \"block.*\"");
  CHECK(found(kMlp, {"optimizer.name=muon"}) ==
        "/optimizer/name: no hidden layer has a matrix for muon to train");
  CHECK(found(kMlp, {"precision=fp8", "device=cuda"}) ==
        "/precision: fp8 finds no linear layer between the first and the last one whose sizes are "
        "multiples of 16");
}

}  // namespace scaletrain::train::model_check_test
