// Turns flags into a run request: the recipe, and its starting point.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/flags/launch_options.h"
#include "lib/recipe/recipe.h"

namespace scaletrain::launcher {

struct RunRequest {
  enum class Start {
    kFresh,       // the run's folder must not hold checkpoints
    kNewest,      // the newest checkpoint of the run's folder, or the beginning where there is none
    kCheckpoint,  // the one named
  };
  recipe::Recipe recipe;
  Start start = Start::kFresh;
  std::filesystem::path checkpoint{};  // for kCheckpoint
  std::vector<std::string> allow;      // keys that may differ from the run that is continued
};

// `scaletrain launch RECIPE`; warns of keys that do nothing. Throws core::RecipeError, or
// core::CheckpointError for --resume PATH.
RunRequest run_to_launch(const LaunchOptions& options);

// `scaletrain resume PATH`: the recipe is the one stored with the run or checkpoint; of s3://...
// the one stored with the newest copy there (/checkpoint/mirror).
RunRequest run_to_resume(const LaunchOptions& options);

// Throws core::UsageError for what --allow names and no recipe for the worker of `recipe` has.
void check_allowed_keys(const std::vector<std::string>& allow, const recipe::Recipe& recipe);

// The recipe that a run or a checkpoint was trained with, read by the `catalog` of the worker that
// is to go on, which may have moved; nullopt where none is stored.
std::optional<recipe::Recipe> stored_recipe(const std::filesystem::path& folder,
                                            const recipe::CatalogPtr& catalog);

// True if one of the keys `allow` (--allow) is `pointer` or a parent of it.
bool is_allowed(const std::vector<std::string>& allow, std::string_view pointer);

// Throws core::UsageError where `recipe` differs from `stored` in keys that change what is trained
// and are not in `allow`. Free are name, output, worker, log, threads, checkpoint, validate,
// storage, what only decides how fast data is read or where and how often activations are computed
// and kept, and how many bad samples end a run. The result: whether the length (epochs, steps)
// differs.
bool check_differences(const recipe::Recipe& stored, const recipe::Recipe& recipe,
                       const std::vector<std::string>& allow, const std::string& where);

}  // namespace scaletrain::launcher
