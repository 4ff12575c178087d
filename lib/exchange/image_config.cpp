#include "lib/exchange/image_config.h"

#include <fmt/format.h>

#include <cmath>

#include "lib/recipe/recipe.h"

namespace scaletrain::exchange {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

// timm's defaults for missing keys
constexpr double kCropPct = 0.875;
constexpr std::int64_t kClasses = 1000, kImageSize = 224;

// timm resizes the shorter side to floor(image_size / crop_pct): half a pixel more than ours keeps
// the quotient from falling below it.
double crop_pct(const recipe::Data& data) {
  if (data.eval_resize == 0 || data.eval_resize == data.image_size) return 1;
  const auto size = static_cast<double>(data.image_size);
  const auto resized = static_cast<double>(data.eval_resize);
  const double exact = size / resized;
  return std::floor(size / exact) == resized ? exact : size / (resized + 0.5);
}

// Three numbers of a pretrained_cfg, or one for all channels, as they are for JSON.
void take_channels(const ForeignConfig& config, const std::string& key, const char* ours,
                   json& normalize) {
  if (!config.has(key)) return;
  const json& values = config.object().at(key);
  constexpr const char* kAllowed = "a list of three numbers or of one";
  if (!values.is_array() || (values.size() != 3 && values.size() != 1)) {
    config.refuse(key, kAllowed);
  }
  for (const json& value : values) {
    if (!value.is_number()) config.refuse(key, kAllowed);
  }
  normalize[ours] = {values.front(), values[values.size() / 2], values.back()};
}

// timm's config may have three channels for a model with one: those of its pretrained weights.
std::int64_t input_size(const ForeignConfig& config, std::int64_t channels) {
  if (!config.has("input_size")) return kImageSize;
  const json& size = config.object().at("input_size");
  if (!size.is_array() || size.size() != 3 || (size[0] != 3 && size[0] != channels) ||
      size[1] != size[2] || !size[1].is_number_integer()) {
    config.refuse("input_size", fmt::format("[{}, N, N]", channels));
  }
  return size[1].get<std::int64_t>();
}

json data_of(const ForeignConfig& config, std::int64_t image_size) {
  config.allow("crop_mode", {"center"});
  config.allow("interpolation", {"bilinear", "bicubic"});
  const double share = config.number("crop_pct", kCropPct);
  if (share <= 0 || share > 1) config.refuse("crop_pct", "more than 0 and at most 1");
  json data = {{"image_size", image_size},
               {"eval_filter", config.text("interpolation", "bicubic")}};
  const double resized = std::floor(static_cast<double>(image_size) / share);
  if (share < 1) data["eval_resize"] = static_cast<std::int64_t>(resized);
  json normalize = json::object();
  take_channels(config, "mean", "mean", normalize);
  take_channels(config, "std", "std", normalize);
  if (!normalize.empty()) data["normalize"] = normalize;
  return data;
}

// An older layout has everything in one object.
ForeignConfig pretrained_cfg(const ForeignConfig& config) {
  return config.has("pretrained_cfg") ? config.inner("pretrained_cfg") : config;
}

}  // namespace

ordered_json image_config(const recipe::Recipe& recipe, const ImageArchitecture& architecture,
                          const std::vector<std::string>& classes) {
  const recipe::Data& data = recipe.data;
  const std::int64_t size = data.image_size;
  ordered_json config = {{"architecture", architecture.name},
                         {"num_classes", recipe.model.num_classes}};
  if (static_cast<std::int64_t>(classes.size()) == recipe.model.num_classes) {
    config["label_names"] = classes;
  }
  if (!architecture.args.empty()) config["model_args"] = architecture.args;
  const std::int64_t channels = recipe.model.in_channels;
  recipe::Normalize normalize = recipe::for_channels(data.normalize, channels);
  normalize.mean.resize(static_cast<std::size_t>(channels));
  normalize.std.resize(static_cast<std::size_t>(channels));
  config["pretrained_cfg"] = {{"input_size", {channels, size, size}},
                              {"fixed_input_size", architecture.args.contains("img_size")},
                              {"interpolation", data.eval_filter},
                              {"crop_pct", crop_pct(data)},
                              {"crop_mode", "center"},
                              {"mean", normalize.mean},
                              {"std", normalize.std},
                              {"num_classes", recipe.model.num_classes},
                              {"first_conv", architecture.first_conv},
                              {"classifier", architecture.classifier}};
  return config;
}

Described describe_image_config(const ForeignConfig& config) {
  const ForeignConfig cfg = pretrained_cfg(config);
  ImageModel found = image_model_of(config);
  Described result;
  result.model = std::move(found.model);
  result.model["num_classes"] = config.integer("num_classes", cfg.integer("num_classes", kClasses));
  const std::int64_t channels = result.model.value("in_channels", std::int64_t{3});
  result.data = data_of(cfg, found.image_size > 0 ? found.image_size : input_size(cfg, channels));
  result.classes = label_names(config);
  return result;
}

std::vector<std::string> label_names(const ForeignConfig& config) {
  const ForeignConfig owner = config.has("label_names") ? config : pretrained_cfg(config);
  if (!owner.has("label_names")) return {};
  const json& names = owner.object().at("label_names");
  std::vector<std::string> result;
  if (!names.is_array()) owner.refuse("label_names", "a list of texts");
  result.reserve(names.size());
  for (const json& name : names) {
    if (!name.is_string()) owner.refuse("label_names", "a list of texts");
    result.push_back(name.get<std::string>());
  }
  return result;
}

}  // namespace scaletrain::exchange
