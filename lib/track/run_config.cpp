#include "lib/track/run_config.h"

#include <fmt/format.h>
#include <libdeflate.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <system_error>

#include "lib/core/disk/disk.h"
#include "lib/core/error.h"
#include "lib/core/text/json_text.h"
#include "lib/observe/secrets.h"

namespace scaletrain::track {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr std::int64_t kMaxRecipeFileBytes = 1 << 20;

void add_flat(const Json& value, const std::string& name, std::map<std::string, std::string>& to) {
  if (value.is_object()) {
    for (const auto& item : value.items()) {
      add_flat(item.value(), name.empty() ? item.key() : name + "." + item.key(), to);
    }
  } else {
    to[name] = value.is_string() ? value.get<std::string>() : core::json_text(value);
  }
}

}  // namespace

std::string run_key(const std::string& name, const Record& first) {
  const std::string text = fmt::format("{} {}", name, first.time);
  return fmt::format("{:08x}{:08x}", static_cast<std::uint32_t>(first.time),
                     libdeflate_crc32(0, text.data(), text.size()));
}

void hide_secrets(Json& value) {
  if (value.is_string()) value = observe::without_secrets(value.get<std::string>());
  if (!value.is_structured()) return;
  for (Json& member : value) hide_secrets(member);
}

Json run_recipe(const fs::path& run) {
  const fs::path file = run / "recipe.json";
  std::error_code absent;
  if (!fs::exists(file, absent)) return Json::object();
  Json recipe = Json::parse(core::read_file(file, kMaxRecipeFileBytes, core::ExitCode::kStorage));
  hide_secrets(recipe);
  return recipe;
}

std::map<std::string, std::string> flat_texts(const Json& object) {
  std::map<std::string, std::string> texts;
  add_flat(object, "", texts);
  return texts;
}

RunEnd run_end(const fs::path& run) {
  std::error_code unknown;
  if (fs::exists(run / "finished.json", unknown)) return RunEnd::kFinished;
  return fs::exists(run / "failure.json", unknown) ? RunEnd::kFailed : RunEnd::kStopped;
}

}  // namespace scaletrain::track
