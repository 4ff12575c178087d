#include "lib/data/classes_file.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "lib/core/disk.h"

namespace scaletrain::data {
namespace {

constexpr std::int64_t kMaxBytes = 16 << 20;

}  // namespace

std::vector<std::string> read_classes(const std::string& folder) {
  const std::filesystem::path path = std::filesystem::path(folder) / "classes.json";
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return {};
  const auto json = nlohmann::json::parse(core::read_file(path, kMaxBytes, core::ExitCode::kData),
                                          nullptr, /*allow_exceptions=*/false);
  std::vector<std::string> names;
  bool sound = json.is_array();
  for (const auto& name : json) {
    sound = sound && name.is_string();
    if (sound) names.push_back(name);
  }
  if (!sound) {
    throw core::DataError(path.string(), "is not a JSON array of strings",
                          R"(write the names of the classes by label, as ["cat", "dog"])");
  }
  return names;
}

}  // namespace scaletrain::data
