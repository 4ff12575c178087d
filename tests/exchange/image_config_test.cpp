#include "lib/exchange/image_config.h"

#include <doctest/doctest.h>

#include <cmath>

#include "lib/core/error.h"
#include "tests/exchange/recipe_support.h"

using namespace scaletrain;            // NOLINT(google-build-using-namespace)
using namespace scaletrain::exchange;  // NOLINT(google-build-using-namespace)

namespace {

constexpr const char* kResNet = R"({"name": "resnet18", "num_classes": 2})";

Described described(const std::string& config) {
  const auto json = nlohmann::json::parse(config);
  return describe_image_config(ForeignConfig(json, "config.json"));
}

}  // namespace

TEST_CASE(
    "an image model's config has architecture, classes and preprocessing as timm writes them") {
  const recipe::Recipe recipe =
      test::image_recipe(kResNet, R"(, "eval_resize": 40, "eval_filter": "bicubic",
                  "normalize": {"mean": [0.5, 0.25, 0], "std": [1, 2, 3]})");
  const auto config = image_config(recipe, timm_architecture(recipe), {"cat", "dog"});
  CHECK(config.dump() ==
        R"({"architecture":"resnet18","num_classes":2,"label_names":["cat","dog"],)"
        R"("pretrained_cfg":{"input_size":[3,32,32],"fixed_input_size":false,)"
        R"("interpolation":"bicubic","crop_pct":0.8,"crop_mode":"center","mean":[0.5,0.25,0.0],)"
        R"("std":[1.0,2.0,3.0],"num_classes":2,"first_conv":"conv1","classifier":"fc"}})");
  const auto nameless = image_config(recipe, timm_architecture(recipe), {"cat"});
  CHECK(!nameless.contains("label_names"));
  const recipe::Recipe vit = test::image_recipe(R"({"name": "vit_tiny", "num_classes": 2})");
  const auto fixed = image_config(vit, timm_architecture(vit), {});
  CHECK(fixed["pretrained_cfg"]["fixed_input_size"] == true);
  CHECK(fixed["pretrained_cfg"]["crop_pct"] == 1);
}

TEST_CASE("a one-channel model is exported with averaged mean and std, which an import repeats") {
  const recipe::Recipe recipe =
      test::image_recipe(R"({"name": "resnet18", "num_classes": 2, "in_channels": 1})",
                         R"(, "normalize": {"mean": [0.5, 0.25, 0], "std": [1, 2, 3]})");
  const auto config = image_config(recipe, timm_architecture(recipe), {});
  CHECK(config["model_args"].dump() == R"({"in_chans":1})");
  CHECK(config["pretrained_cfg"]["input_size"].dump() == "[1,32,32]");
  CHECK(config["pretrained_cfg"]["mean"].dump() == "[0.25]");
  CHECK(config["pretrained_cfg"]["std"].dump() == "[2.0]");
  const Described back = described(config.dump());
  CHECK(back.model.dump() == R"({"in_channels":1,"name":"resnet18","num_classes":2})");
  CHECK(back.data["normalize"].dump() == R"({"mean":[0.25,0.25,0.25],"std":[2.0,2.0,2.0]})");
  // Of timm the preprocessing may be that of the weights it came from.
  const Described adapted = described(
      R"({"architecture": "resnet18", "model_args": {"in_chans": 1},
          "pretrained_cfg": {"input_size": [3, 64, 64], "mean": [0.5, 0.25, 0]}})");
  CHECK(adapted.model["in_channels"] == 1);
  CHECK(adapted.data["image_size"] == 64);
  CHECK(adapted.data["normalize"].dump() == R"({"mean":[0.5,0.25,0]})");
}

TEST_CASE("timm computes the size that we resize to from the share that we write") {
  for (int resized = 32; resized <= 300; ++resized) {
    const recipe::Recipe recipe =
        test::image_recipe(kResNet, fmt::format(R"(, "eval_resize": {})", resized));
    const auto config = image_config(recipe, timm_architecture(recipe), {});
    const auto share = config["pretrained_cfg"]["crop_pct"].get<double>();
    CHECK(std::floor(32 / share) == resized);
  }
}

TEST_CASE("a config of timm becomes model, data and classes of a recipe") {
  const Described found = described(
      R"({"architecture": "resnet18", "num_classes": 2, "label_names": ["cat", "dog"],
          "pretrained_cfg": {"input_size": [3, 64, 64], "interpolation": "bicubic",
          "crop_pct": 0.875, "mean": [0.5, 0.5, 0.5], "std": [0.25, 0.25, 0.25],
          "num_classes": 1000}})");
  CHECK(found.model.dump() == R"({"name":"resnet18","num_classes":2})");
  CHECK(found.data.dump() ==  // 64 / 0.875 = 73.1
        R"({"eval_filter":"bicubic","eval_resize":73,"image_size":64,)"
        R"("normalize":{"mean":[0.5,0.5,0.5],"std":[0.25,0.25,0.25]}})");
  CHECK(found.classes == std::vector<std::string>{"cat", "dog"});
  // Of everything else timm has its own values.
  const Described bare = described(R"({"architecture": "vit_tiny_patch16_384"})");
  CHECK(bare.model["num_classes"] == 1000);
  CHECK(bare.data.dump() == R"({"eval_filter":"bicubic","eval_resize":438,"image_size":384})");
  CHECK(bare.classes.empty());
  const Described whole =
      described(R"({"architecture": "resnet18", "pretrained_cfg": {"crop_pct": 1.0}})");
  CHECK(whole.data.dump() == R"({"eval_filter":"bicubic","image_size":224})");
}

TEST_CASE("preprocessing that is not ours is refused") {
  for (const auto& [cfg, key] : std::vector<std::pair<std::string, std::string>>{
           {R"("crop_mode": "squash")", "crop_mode"},
           {R"("interpolation": "lanczos")", "interpolation"},
           {R"("crop_pct": 0)", "crop_pct"},
           {R"("crop_pct": 1.5)", "crop_pct"},
           {R"("mean": [0.5, 0.5])", "mean"},
           {R"("std": [1, 1, "1"])", "std"},
           {R"("input_size": [1, 32, 32])", "input_size"},
           {R"("label_names": {"0": "cat"})", "label_names"},
           {R"("label_names": [1, 2])", "label_names"}}) {
    std::string place;
    try {
      described(fmt::format(R"({{"architecture": "resnet18", "pretrained_cfg": {{{}}}}})", cfg));
    } catch (const core::CheckpointError& error) {
      place = error.place();
    }
    const std::string expected = "config.json: /pretrained_cfg/" + key;
    CHECK(place == expected);
  }
}
