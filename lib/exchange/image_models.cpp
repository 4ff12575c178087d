#include "lib/exchange/image_models.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <regex>
#include <set>
#include <string_view>
#include <utility>

#include "lib/core/error.h"
#include "lib/recipe/recipe.h"

namespace scaletrain::exchange {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr std::array<std::string_view, 9> kResNets{
    "resnet18",        "resnet34",         "resnet50",        "resnet101",       "resnet152",
    "resnext50_32x4d", "resnext101_32x8d", "wide_resnet50_2", "wide_resnet101_2"};
constexpr std::array<std::string_view, 4> kVits{"vit_tiny", "vit_small", "vit_base", "vit_large"};
constexpr std::array<std::string_view, 3> kConvNexts{"convnext_tiny", "convnext_small",
                                                     "convnext_base"};
constexpr std::array<std::string_view, 2> kMobileNets{"mobilenet_v3_small", "mobilenet_v3_large"};

// In timm, another stem size changes later stages too.
constexpr std::int64_t kConvNextPatch = 4;
// Channels of the first convolutions of timm's deep stem.
constexpr std::int64_t kStemWidth = 32;

constexpr const char* kPlain = "export it as safetensors or pt, which hold any model";

template <std::size_t kSize>
bool is_one_of(const std::array<std::string_view, kSize>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

[[noreturn]] void refuse_export(const std::string& to, const std::string& found) {
  throw core::UsageError(fmt::format("--to {}", to), found, kPlain);
}

ordered_json vit_args(const recipe::Recipe& recipe) {
  const recipe::Model& model = recipe.model;
  ordered_json args = {
      {"img_size", recipe.data.image_size},  {"patch_size", model.integer("patch_size")},
      {"embed_dim", model.integer("dim")},   {"depth", model.integer("depth")},
      {"num_heads", model.integer("heads")}, {"mlp_ratio", model.number("mlp_ratio")},
  };
  if (model.number("layer_scale") > 0) args["init_values"] = model.number("layer_scale");
  if (model.text("pool") == "avg") {
    args["class_token"] = false;
    args["global_pool"] = "avg";
  }
  return args;
}

ordered_json resnet_args(const recipe::Model& model) {
  ordered_json args = ordered_json::object();
  if (model.text("stem") == "d") {
    args = {{"stem_type", "deep"}, {"stem_width", kStemWidth}, {"avg_down", true}};
  }
  if (model.text("norm") == "group") args["norm_layer"] = "groupnorm";
  return args;
}

ordered_json convnext_args(const recipe::Model& model) {
  if (model.integer("patch_size") != kConvNextPatch) {
    refuse_export("timm", fmt::format("timm's {} has a stem of {}, and this one of {} "
                                      "(/model/patch_size)",
                                      model.name, kConvNextPatch, model.integer("patch_size")));
  }
  if (model.number("layer_scale") == 0) {
    refuse_export("timm", fmt::format("timm's {} has layer scale, and this one none "
                                      "(/model/layer_scale)",
                                      model.name));
  }
  return {{"ls_init_value", model.number("layer_scale")}};
}

// Converts arguments of timm to our keys; arguments that affect only training are ignored.
void take_args(const ForeignConfig& args, const std::map<std::string, std::string>& ours,
               const std::set<std::string>& others, json& model) {
  static const std::set<std::string> aside{
      "num_classes",   "in_chans",        "drop_rate",       "proj_drop_rate", "attn_drop_rate",
      "pos_drop_rate", "patch_drop_rate", "drop_block_rate", "zero_init_last", "weight_init"};
  args.allow("in_chans", {1, 3});
  if (args.integer("in_chans", 3) == 1) model["in_channels"] = 1;
  for (const auto& [key, value] : args.object().items()) {
    if (value.is_null() || aside.contains(key) || others.contains(key)) continue;
    const auto found = ours.find(key);
    if (found == ours.end()) args.refuse(key, "no such argument");
    if (!value.is_number()) args.refuse(key, "a number");
    model[found->second] = value;
  }
}

// timm takes a number or the two of height and width.
std::int64_t square_size(const ForeignConfig& args, const std::string& key) {
  const json& size = args.object().at(key);
  if (size.is_number_integer()) return size.get<std::int64_t>();
  if (!size.is_array() || size.size() != 2 || size[0] != size[1] || !size[0].is_number_integer()) {
    args.refuse(key, "one number for height and width");
  }
  return size[0].get<std::int64_t>();
}

ImageModel vit_of(const std::smatch& name, const ForeignConfig& args) {
  ImageModel found{
      .model = {{"name", "vit_" + name[1].str()}, {"patch_size", std::stoll(name[2].str())}},
      .image_size = std::stoll(name[3].str())};
  take_args(args,
            {{"patch_size", "patch_size"},
             {"embed_dim", "dim"},
             {"depth", "depth"},
             {"num_heads", "heads"},
             {"mlp_ratio", "mlp_ratio"},
             {"init_values", "layer_scale"},
             {"drop_path_rate", "drop_path"}},
            {"img_size", "global_pool", "class_token", "fc_norm"}, found.model);
  if (args.has("img_size")) found.image_size = square_size(args, "img_size");
  args.allow("global_pool", {"token", "avg"});
  const bool averages = args.text("global_pool", "token") == "avg";
  args.allow("class_token", {!averages});
  args.allow("fc_norm", {averages});
  if (averages && args.flag("class_token", true)) args.refuse("class_token", "false");
  if (averages) found.model["pool"] = "avg";
  return found;
}

ImageModel resnet_of(const std::string& name, const ForeignConfig& args) {
  ImageModel found{.model = {{"name", name}}};
  take_args(args, {}, {"global_pool", "stem_type", "stem_width", "avg_down", "norm_layer"},
            found.model);
  args.allow("global_pool", {"avg"});
  args.allow("norm_layer", {"batchnorm", "batchnorm2d", "groupnorm"});
  if (args.text("norm_layer", "") == "groupnorm") found.model["norm"] = "group";
  const bool deep = args.flag("avg_down", false);
  args.allow("stem_type", {deep ? "deep" : ""});
  args.allow("stem_width", {deep ? kStemWidth : 2 * kStemWidth});
  if (!deep) return found;
  if (args.text("stem_type") != "deep") args.refuse("stem_type", "\"deep\"");
  if (args.integer("stem_width") != kStemWidth) args.refuse("stem_width", "32");
  found.model["stem"] = "d";
  return found;
}

ImageModel convnext_of(const std::string& name, const ForeignConfig& args) {
  ImageModel found{.model = {{"name", name}}};
  args.allow("patch_size", {kConvNextPatch});
  take_args(args, {{"ls_init_value", "layer_scale"}, {"drop_path_rate", "drop_path"}},
            {"global_pool", "patch_size"}, found.model);
  args.allow("global_pool", {"avg"});
  return found;
}

ImageArchitecture timm_layout(const recipe::Recipe& recipe) {
  const recipe::Model& model = recipe.model;
  if (is_one_of(kVits, model.name)) {
    return {fmt::format("{}_patch16_224", model.name), vit_args(recipe), "patch_embed.proj",
            "head"};
  }
  if (is_one_of(kResNets, model.name)) {
    return {model.name, resnet_args(model), model.text("stem") == "d" ? "conv1.0" : "conv1", "fc"};
  }
  if (is_one_of(kConvNexts, model.name)) {
    return {model.name, convnext_args(model), "stem.0", "head.fc"};
  }
  refuse_export("timm",
                fmt::format("timm has no {} with these tensors; these can be exported: vit_*, "
                            "convnext_*, resnet*, resnext* and wide_resnet*",
                            model.name));
}

}  // namespace

ImageArchitecture timm_architecture(const recipe::Recipe& recipe) {
  ImageArchitecture architecture = timm_layout(recipe);
  if (recipe.model.in_channels != 3) architecture.args["in_chans"] = recipe.model.in_channels;
  return architecture;
}

ImageArchitecture torchvision_architecture(const recipe::Recipe& recipe) {
  const recipe::Model& model = recipe.model;
  const bool is_resnet = is_one_of(kResNets, model.name);
  if (!is_resnet && !is_one_of(kMobileNets, model.name)) {
    refuse_export("torchvision",
                  fmt::format("torchvision has no {} with these tensors; these can be exported: "
                              "resnet*, resnext*, wide_resnet* and mobilenet_v3_*",
                              model.name));
  }
  const auto refuse = [&](const char* key) {
    refuse_export("torchvision", fmt::format("torchvision's {} is not built with /model/{} \"{}\"",
                                             model.name, key, model.text(key)));
  };
  if (model.text("norm") == "group") refuse("norm");
  if (model.in_channels != 3) {
    refuse_export("torchvision", fmt::format("torchvision's {} takes 3 channels, and this one {} "
                                             "(/model/in_channels)",
                                             model.name, model.in_channels));
  }
  if (!is_resnet) return {model.name, ordered_json::object(), "features.0.0", "classifier.3"};
  if (model.text("stem") == "d") refuse("stem");
  return {model.name, ordered_json::object(), "conv1", "fc"};
}

ImageModel image_model_of(const ForeignConfig& config) {
  static const std::regex vit_name(
      "(?:vit|deit)_(tiny|small|base|large)_patch([0-9]{1,2})_([0-9]{2,4})");
  static const std::regex deep_name("((?:resnet|resnext)[0-9]+)d(_32x[48]d)?");
  const std::string name = config.text("architecture");
  const ForeignConfig args = config.inner("model_args");
  std::smatch match;
  if (std::regex_match(name, match, vit_name)) return vit_of(match, args);
  if (is_one_of(kResNets, name)) return resnet_of(name, args);
  if (is_one_of(kConvNexts, name)) return convnext_of(name, args);
  if (is_one_of(kMobileNets, name)) return {.model = {{"name", name}}};
  if (std::regex_match(name, match, deep_name)) {
    const std::string plain = match[1].str() + match[2].str();
    ImageModel found = resnet_of(plain, args);
    found.model["stem"] = "d";
    if (is_one_of(kResNets, plain)) return found;
  }
  config.refuse("architecture",
                "one of vit_{tiny,small,base,large}_patch*_*, convnext_{tiny,small,base}, resnet*, "
                "resnext*, wide_resnet*, the \"d\" variants of them, mobilenet_v3_{small,large}");
}

}  // namespace scaletrain::exchange
