#include "lib/exchange/weights_classes.h"

#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "lib/core/disk/disk.h"
#include "lib/core/disk/read_faults.h"
#include "lib/core/error.h"
#include "lib/core/text/placeholder.h"
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
  const std::string text = core::read_file(file, kMostClassBytes, core::ExitCode::kData);
  try {
    return json::parse(text).get<std::vector<std::string>>();
  } catch (const json::exception&) {
    core::refuse_placeholder<core::CheckpointError>(file.string(), text);
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

std::vector<std::int64_t> match_classes(const format::ClassNames& ours,
                                        const format::ClassNames& theirs) {
  try {
    format::numbers_by_name(theirs.names, ours, theirs.owner);
    return format::numbers_by_name(ours.names, theirs, ours.owner);
  } catch (const core::DataError& error) {
    throw core::CheckpointError(
        error.place(), error.found(),
        fmt::format("{} has {}: set /model/weights/new_head for other classes; if only the names "
                    "differ, \"allow_other\": [\"class_names\"] matches the head by class number",
                    ours.owner, format::shown_classes(ours.names)));
  }
}

}  // namespace scaletrain::exchange
