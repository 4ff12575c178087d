// Recipes and folders for the tests of loading.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "lib/recipe/recipe.h"

namespace scaletrain::recipe {

// The smallest recipe, one key a line; `more` follows as further lines from line 6 on.
std::string minimal_recipe(const std::string& more = "");

// The whole text of the error of parsing `text` as "r.json", or "no error".
std::string error_of(const std::string& text, const std::vector<std::string>& overrides = {});

// The same for a file; "RecipeError" is the only type that passes.
std::string load_error_of(const std::filesystem::path& path);

class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path write(const std::string& name, const std::string& text) const;

 private:
  std::filesystem::path path_;
};

}  // namespace scaletrain::recipe
