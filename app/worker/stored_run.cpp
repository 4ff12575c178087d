#include "app/worker/stored_run.h"

#include "lib/format/checkpoint/checkpoint_folder.h"
#include "lib/recipe/load.h"

namespace scaletrain::app {

namespace fs = std::filesystem;

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
