#include "lib/data/classes_file.h"

#include <nlohmann/json.hpp>

#include "lib/core/error.h"
#include "lib/core/url.h"

namespace scaletrain::data {
namespace {

constexpr std::int64_t kMaxBytes = 16 << 20;

}  // namespace

std::vector<std::string> read_classes(const std::string& folder, const storage::Storage& storage) {
  const std::string path = folder.empty() ? "classes.json" : folder + "/classes.json";
  const auto text = storage::read_if_there(storage, path, kMaxBytes);
  if (!text) return {};
  const auto json = nlohmann::json::parse(*text, nullptr, /*allow_exceptions=*/false);
  std::vector<std::string> names;
  bool sound = json.is_array();
  for (const auto& name : json) {
    sound = sound && name.is_string();
    if (sound) names.push_back(name);
  }
  if (!sound) {
    throw core::DataError(core::shown_path(path), "is not a JSON array of strings",
                          R"(write the names of the classes by label, as ["cat", "dog"])");
  }
  return names;
}

}  // namespace scaletrain::data
