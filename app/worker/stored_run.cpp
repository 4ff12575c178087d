#include "app/worker/stored_run.h"

#include "lib/core/error.h"
#include "lib/core/log.h"
#include "lib/format/checkpoint_folder.h"
#include "lib/recipe/load.h"

namespace scaletrain::app {

namespace fs = std::filesystem;

fs::path checkpoint_at(const std::string& path) {
  const auto found =
      format::find_checkpoint(path, [](const std::string& damage) { core::warn("{}", damage); });
  if (found) return *found;
  throw core::CheckpointError(path, "there is no checkpoint in it",
                              "name a run's folder, its checkpoints folder or one checkpoint");
}

recipe::Recipe recipe_of(const fs::path& checkpoint, const recipe::CatalogPtr& catalog,
                         const std::vector<std::string>& overrides) {
  const std::string text =
      format::read_listed_file(checkpoint, format::read_manifest(checkpoint), format::kRecipeFile);
  return recipe::parse_recipe(text, (checkpoint / format::kRecipeFile).string(), overrides,
                              catalog);
}

std::vector<std::string> classes_of(const fs::path& checkpoint) {
  return format::read_class_names(checkpoint, format::read_manifest(checkpoint));
}

}  // namespace scaletrain::app
