#include "lib/exchange/weights_classes.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "lib/core/disk/disk.h"
#include "lib/core/disk/read_faults.h"
#include "lib/core/error.h"
#include "lib/exchange/foreign_config.h"
#include "lib/exchange/image_config.h"
#include "lib/format/checkpoint/checkpoint_folder_names.h"
#include "lib/format/json_fields.h"

namespace scaletrain::exchange {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::int64_t kMostClassBytes = 32 << 20;

bool is_plain_file(const fs::path& path) { return core::type_at(path) == fs::file_type::regular; }

std::vector<std::string> names_in(const fs::path& file) {
  try {
    return json::parse(core::read_file(file, kMostClassBytes, core::ExitCode::kData))
        .get<std::vector<std::string>>();
  } catch (const json::exception&) {
    throw core::CheckpointError(file.string(), "is not a list of names",
                                "write the names of the classes, or remove the file");
  }
}

}  // namespace

std::vector<std::string> classes_of_weights(const format::WeightFiles& files) {
  const fs::path folder = files.files.front().parent_path();
  const fs::path classes = folder / format::kClassesFile;
  if (is_plain_file(folder / format::kRecipeFile) && is_plain_file(classes))
    return names_in(classes);
  if (!files.config) return {};
  const std::string place = files.config->string();
  const json object = format::parse_object(
      core::read_file(*files.config, kMostClassBytes, core::ExitCode::kData), place);
  return label_names(ForeignConfig(object, place));
}

}  // namespace scaletrain::exchange
