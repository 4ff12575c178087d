#include "lib/exchange/known_of_weights.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>

#include "lib/core/disk/disk.h"
#include "lib/core/disk/read_faults.h"
#include "lib/core/error.h"
#include "lib/exchange/foreign_config.h"
#include "lib/exchange/image_models.h"
#include "lib/exchange/language_config.h"
#include "lib/format/checkpoint/checkpoint_folder.h"
#include "lib/format/checkpoint/checkpoint_folder_names.h"
#include "lib/format/json_fields.h"

namespace scaletrain::exchange {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

json read_known(const fs::path& file) {
  constexpr std::int64_t kMostKnownBytes = 32 << 20;
  return format::parse_object(core::read_file(file, kMostKnownBytes, core::ExitCode::kData),
                              file.string());
}

// Returns a member of an object; null if it is missing.
json member_of(const json& object, const char* key) {
  if (!object.is_object()) return {};
  const auto found = object.find(key);
  return found == object.end() ? json() : *found;
}

std::string text_of_member(const json& object, const char* key) {
  const json found = member_of(object, key);
  return found.is_string() ? found.get<std::string>() : "";
}

// Three numbers, or one for all channels; {} for anything else.
std::vector<double> channels_of(const json& values) {
  if (!values.is_array() || (values.size() != 3 && values.size() != 1)) return {};
  std::vector<double> result;
  for (const json& value : values) {
    if (!value.is_number()) return {};
    result.push_back(value.get<double>());
  }
  result.resize(3, result.front());
  return result;
}

std::optional<double> share_of(double size, double resized) {
  if (size <= 0 || resized <= 0 || size > resized) return std::nullopt;
  return size / resized;
}

void take_recipe(const json& recipe, KnownOfWeights& known) {
  known.model = member_of(recipe, "model");
  if (!known.model.is_object()) known.model = json::object();
  for (const char* const key : {"weights", "freeze", "linear_probe"}) known.model.erase(key);
  const json precision = member_of(recipe, "precision");
  known.precision =
      precision.is_string() ? precision.get<std::string>() : text_of_member(precision, "name");
  if (!known.model.contains("num_classes")) return;
  const json data = member_of(recipe, "data");
  known.mean = channels_of(member_of(member_of(data, "normalize"), "mean"));
  known.std = channels_of(member_of(member_of(data, "normalize"), "std"));
  known.eval_filter = text_of_member(data, "eval_filter");
  const json size = member_of(data, "image_size"), resized = member_of(data, "eval_resize");
  if (!size.is_number_integer() || !resized.is_number_integer()) return;
  known.crop = resized == 0 ? 1 : share_of(size.get<double>(), resized.get<double>());
}

// Returns the keys of a model, or {} for other kinds of models; loading reports the reason.
template <class Describe>
json model_or_nothing(const Describe& describe) {
  try {
    return describe();
  } catch (const core::CheckpointError&) {
    return json::object();
  }
}

// An older layout has everything in one object.
json settings_of_timm(const json& config) {
  const json inner = member_of(config, "pretrained_cfg");
  return inner.is_object() ? inner : config;
}

void take_timm(const json& config, const std::string& place, KnownOfWeights& known) {
  known.model =
      model_or_nothing([&] { return image_model_of(ForeignConfig(config, place)).model; });
  const json settings = settings_of_timm(config);
  json classes = member_of(config, "num_classes");
  if (!classes.is_number_integer()) classes = member_of(settings, "num_classes");
  if (!known.model.empty() && classes.is_number_integer()) known.model["num_classes"] = classes;
  known.mean = channels_of(member_of(settings, "mean"));
  known.std = channels_of(member_of(settings, "std"));
  known.eval_filter = text_of_member(settings, "interpolation");
  const json crop = member_of(settings, "crop_pct");
  if (crop.is_number()) known.crop = share_of(crop.get<double>(), 1);
}

std::string precision_of_dtype(const std::string& dtype) {
  if (dtype == "float32") return "fp32";
  if (dtype == "bfloat16") return "bf16";
  return dtype == "float16" ? "fp16" : "";
}

void take_hugging_face(json config, const std::string& place, KnownOfWeights& known) {
  const std::string dtype = text_of_member(config, "dtype");
  known.precision =
      precision_of_dtype(dtype.empty() ? text_of_member(config, "torch_dtype") : dtype);
  for (const char* const drop : {"embd_pdrop", "attn_pdrop", "resid_pdrop"}) config.erase(drop);
  known.model = model_or_nothing(
      [&] { return describe_language_config(ForeignConfig(config, place)).model; });
  known.model.erase("dropout");
}

// Returns recipe.json of a checkpoint, or beside an export's files if classes.json is there too: a
// user may keep an unrelated recipe beside weights. nullopt if there is none.
std::optional<fs::path> recipe_of_weights(const format::WeightFiles& files) {
  if (files.checkpoint) return *files.checkpoint / format::kRecipeFile;
  if (files.files.empty()) return std::nullopt;
  const fs::path beside = files.files.front().parent_path() / format::kRecipeFile;
  for (const fs::path& file : {beside, beside.parent_path() / format::kClassesFile}) {
    if (core::type_at(file) != fs::file_type::regular) return std::nullopt;
  }
  return beside;
}

bool is_regular(const fs::path& file) { return core::type_at(file) == fs::file_type::regular; }

}  // namespace

format::WeightFiles files_to_look_at(const std::string& path) {
  if (core::type_at(path) == fs::file_type::directory) {
    const format::CheckpointsAt found = format::checkpoints_at(path);
    if (!found.folders.empty() && is_regular(found.folders.front() / format::kManifestName)) {
      format::WeightFiles files;
      files.checkpoint = found.folders.front();
      files.files = {*files.checkpoint / format::kModelFile};
      return files;
    }
  }
  return format::find_weight_files(path, [](const std::string&) {});
}

KnownOfWeights known_of_recipe(const fs::path& recipe) {
  KnownOfWeights known;
  known.place = recipe.string();
  take_recipe(read_known(recipe), known);
  return known;
}

KnownOfWeights known_of_weights(const format::WeightFiles& files) {
  if (const auto recipe = recipe_of_weights(files)) return known_of_recipe(*recipe);
  KnownOfWeights known;
  if (files.config) {
    known.place = files.config->string();
    const json config = read_known(*files.config);
    if (config.contains("architecture")) {
      take_timm(config, known.place, known);
    } else if (config.contains("model_type")) {
      take_hugging_face(config, known.place, known);
    }
  }
  return known;
}

bool is_same_dtype(const std::string& a, const std::string& b) {
  const auto dtype = [](const std::string& name) -> std::string {
    if (name == "tf32") return "fp32";
    return name == "bf16_pure" ? "bf16" : name;
  };
  return dtype(a) == dtype(b);
}

}  // namespace scaletrain::exchange
