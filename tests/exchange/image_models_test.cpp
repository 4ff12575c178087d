#include "lib/exchange/image_models.h"

#include <doctest/doctest.h>

#include "lib/core/error.h"
#include "tests/exchange/recipe_support.h"

using namespace scaletrain;            // NOLINT(google-build-using-namespace)
using namespace scaletrain::exchange;  // NOLINT(google-build-using-namespace)

namespace {

ImageArchitecture for_timm(const std::string& model) {
  return timm_architecture(test::image_recipe(model));
}

// The recipe's model of a config.json.
std::string model_of(const std::string& config) {
  const auto json = nlohmann::json::parse(config);
  const ImageModel found = image_model_of(ForeignConfig(json, "config.json"));
  return fmt::format("{} at {}", found.model.dump(), found.image_size);
}

template <class Call>
std::string text_of(const Call& call) {
  try {
    call();
  } catch (const core::Error& error) {
    return error.found();
  }
  return "";
}

}  // namespace

TEST_CASE("timm's architecture has the arguments by which its model is ours") {
  const ImageArchitecture vit = for_timm(
      R"({"name": "vit_tiny", "num_classes": 3, "depth": 2, "layer_scale": 0.1, "pool": "avg"})");
  CHECK(vit.name == "vit_tiny_patch16_224");
  CHECK(vit.args.dump() ==
        R"({"img_size":32,"patch_size":4,"embed_dim":192,"depth":2,"num_heads":3,"mlp_ratio":4.0,)"
        R"("init_values":0.1,"class_token":false,"global_pool":"avg"})");
  CHECK(vit.first_conv == "patch_embed.proj");
  CHECK(vit.classifier == "head");

  const ImageArchitecture plain = for_timm(R"({"name": "resnext50_32x4d", "num_classes": 3})");
  CHECK(plain.name == "resnext50_32x4d");
  CHECK(plain.args.dump() == "{}");
  CHECK(plain.first_conv == "conv1");
  CHECK(plain.classifier == "fc");
  const ImageArchitecture deep =
      for_timm(R"({"name": "resnet18", "num_classes": 3, "stem": "d", "norm": "group"})");
  CHECK(deep.args.dump() ==
        R"({"stem_type":"deep","stem_width":32,"avg_down":true,"norm_layer":"groupnorm"})");
  CHECK(deep.first_conv == "conv1.0");

  const ImageArchitecture grey =
      for_timm(R"({"name": "resnet18", "num_classes": 3, "in_channels": 1})");
  CHECK(grey.args.dump() == R"({"in_chans":1})");
  const ImageArchitecture convnext = for_timm(R"({"name": "convnext_tiny", "num_classes": 3})");
  CHECK(convnext.args.dump() == R"({"ls_init_value":1e-06})");
  CHECK(convnext.first_conv == "stem.0");
  CHECK(convnext.classifier == "head.fc");
}

TEST_CASE("what a library cannot build is refused with the key that stands in the way") {
  for (const auto& [model, found] : std::vector<std::pair<std::string, std::string>>{
           {R"({"name": "convnext_tiny", "num_classes": 3, "patch_size": 2})",
            "timm's convnext_tiny has a stem of 4, and this one of 2 (/model/patch_size)"},
           {R"({"name": "convnext_tiny", "num_classes": 3, "layer_scale": 0})",
            "timm's convnext_tiny has layer scale, and this one none (/model/layer_scale)"},
           {R"({"name": "mlp", "num_classes": 3})",
            "timm has no mlp with these tensors; these can be exported: vit_*, convnext_*, "
            "resnet*, resnext* "
            "and wide_resnet*"}}) {
    const std::string shown = text_of([&, &text = model] { for_timm(text); });
    CHECK(shown == found);
  }
  const auto for_torchvision = [](const std::string& model) {
    return text_of([&] { torchvision_architecture(test::image_recipe(model)); });
  };
  CHECK(for_torchvision(R"({"name": "resnet18", "num_classes": 3, "stem": "d"})") ==
        R"(torchvision's resnet18 is not built with /model/stem "d")");
  CHECK(for_torchvision(R"({"name": "mobilenet_v3_small", "num_classes": 3, "norm": "group"})") ==
        R"(torchvision's mobilenet_v3_small is not built with /model/norm "group")");
  CHECK(for_torchvision(R"({"name": "resnet18", "num_classes": 3, "in_channels": 1})") ==
        "torchvision's resnet18 takes 3 channels, and this one 1 (/model/in_channels)");
  CHECK(for_torchvision(R"({"name": "vit_tiny", "num_classes": 3})") ==
        "torchvision has no vit_tiny with these tensors; these can be exported: resnet*, resnext*, "
        "wide_resnet* and mobilenet_v3_*");
}

TEST_CASE("torchvision has our residual networks and MobileNets under our names") {
  const ImageArchitecture resnet = torchvision_architecture(
      test::image_recipe(R"({"name": "resnet50", "num_classes": 3, "norm": "sync_batch"})"));
  CHECK(resnet.name == "resnet50");
  CHECK(resnet.classifier == "fc");
  const ImageArchitecture mobile = torchvision_architecture(
      test::image_recipe(R"({"name": "mobilenet_v3_large", "num_classes": 3})"));
  CHECK(mobile.name == "mobilenet_v3_large");
  CHECK(mobile.classifier == "classifier.3");
}

TEST_CASE("an architecture of timm or torchvision becomes a model of a recipe") {
  for (const auto& [config, expected] : std::vector<std::pair<std::string, std::string>>{
           {R"({"architecture": "vit_base_patch32_384"})",
            R"({"name":"vit_base","patch_size":32} at 384)"},
           {R"({"architecture": "deit_tiny_patch16_224"})",
            R"({"name":"vit_tiny","patch_size":16} at 224)"},
           {R"({"architecture": "vit_tiny_patch16_224", "model_args": {"img_size": [32, 32],
                "patch_size": 4, "embed_dim": 96, "depth": 2, "num_heads": 2, "mlp_ratio": 2,
                "init_values": 0.1, "global_pool": "avg", "class_token": false, "drop_rate": 0.1,
                "drop_path_rate": 0.2, "in_chans": 3}})",
            R"({"depth":2,"dim":96,"drop_path":0.2,"heads":2,"layer_scale":0.1,"mlp_ratio":2,)"
            R"("name":"vit_tiny","patch_size":4,"pool":"avg"} at 32)"},
           {R"({"architecture": "resnet50d"})", R"({"name":"resnet50","stem":"d"} at 0)"},
           {R"({"architecture": "resnext50d_32x4d"})",
            R"({"name":"resnext50_32x4d","stem":"d"} at 0)"},
           {R"({"architecture": "resnet18", "model_args": {"stem_type": "deep", "stem_width": 32,
                "avg_down": true, "norm_layer": "groupnorm"}})",
            R"({"name":"resnet18","norm":"group","stem":"d"} at 0)"},
           {R"({"architecture": "wide_resnet50_2", "model_args": {"drop_rate": 0.1,
                "global_pool": "avg"}})",
            R"({"name":"wide_resnet50_2"} at 0)"},
           {R"({"architecture": "convnext_small", "model_args": {"ls_init_value": 0.5}})",
            R"({"layer_scale":0.5,"name":"convnext_small"} at 0)"},
           {R"({"architecture": "mobilenet_v3_small"})",
            R"({"name":"mobilenet_v3_small"} at 0)"}}) {
    const std::string found = model_of(config);
    CHECK(found == expected);
  }
}

TEST_CASE("what our models do not have is refused") {
  for (
      const auto& [config, key] : std::vector<std::pair<std::string, std::string>>{
          {R"({"architecture": "efficientnet_b0"})", "/architecture"},
          {R"({"architecture": "vit_tiny_patch16_224_in21k"})", "/architecture"},
          {R"({"architecture": "resnet26d"})", "/architecture"},
          {R"({"num_classes": 3})", "/architecture"},
          {R"({"architecture": "resnet18", "model_args": {"global_pool": "max"}})",
           "/model_args/global_pool"},
          {R"({"architecture": "convnext_tiny", "model_args": {"global_pool": "max"}})",
           "/model_args/global_pool"},
          {R"({"architecture": "resnet18", "model_args": {"in_chans": 4}})",
           "/model_args/in_chans"},
          {R"({"architecture": "resnet18", "model_args": {"avg_down": true}})",
           "/model_args/stem_type"},
          {R"({"architecture": "resnet18", "model_args": {"stem_type": "deep"}})",
           "/model_args/stem_type"},
          {R"({"architecture": "resnet18", "model_args": {"avg_down": true, "stem_type": "deep"}})",
           "/model_args/stem_width"},
          {R"({"architecture": "resnet18", "model_args": {"replace_stem_pool": true}})",
           "/model_args/replace_stem_pool"},
          {R"({"architecture": "resnet18", "model_args": {"norm_layer": "layernorm"}})",
           "/model_args/norm_layer"},
          {R"({"architecture": "convnext_tiny", "model_args": {"patch_size": 2}})",
           "/model_args/patch_size"},
          {R"({"architecture": "vit_tiny_patch16_224", "model_args": {"qkv_bias": false}})",
           "/model_args/qkv_bias"},
          {R"({"architecture": "vit_tiny_patch16_224", "model_args": {"depth": "2"}})",
           "/model_args/depth"},
          {R"({"architecture": "vit_tiny_patch16_224", "model_args": {"global_pool": "avg"}})",
           "/model_args/class_token"},
          {R"({"architecture": "vit_tiny_patch16_224", "model_args": {"class_token": false}})",
           "/model_args/class_token"},
          {R"({"architecture": "vit_tiny_patch16_224", "model_args": {"img_size": [32, 64]}})",
           "/model_args/img_size"}}) {
    std::string place;
    try {
      model_of(config);
    } catch (const core::CheckpointError& error) {
      place = error.place();
    }
    const std::string expected = "config.json: " + key;
    CHECK(place == expected);
  }
}
