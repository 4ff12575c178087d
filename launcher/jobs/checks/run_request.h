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
    kNewest,      // the newest checkpoint of the run's folder, or the start if there is none
    kCheckpoint,  // a given checkpoint
  };
  recipe::Recipe recipe;
  Start start = Start::kFresh;
  std::filesystem::path checkpoint{};  // for kCheckpoint
  std::vector<std::string> allow;      // keys that may differ from the resumed run
};

// `scaletrain launch RECIPE`; warns of unused keys. Throws core::RecipeError, or
// core::CheckpointError for --resume PATH.
RunRequest run_to_launch(const LaunchOptions& options);

// `scaletrain resume PATH`: uses the recipe stored with the run or checkpoint; for s3://... that of
// the newest remote copy (/checkpoint/mirror).
RunRequest run_to_resume(const LaunchOptions& options);

// Throws core::UsageError for a key in --allow that no recipe for the worker of `recipe` has.
void check_allowed_keys(const std::vector<std::string>& allow, const recipe::Recipe& recipe);

// Returns the recipe stored with a run or checkpoint, read with the `catalog` of the worker that
// will continue (its path may have changed); nullopt if none is stored.
std::optional<recipe::Recipe> stored_recipe(const std::filesystem::path& folder,
                                            const recipe::CatalogPtr& catalog);

// True if one of the keys `allow` (--allow) is `pointer` or a parent of it.
bool is_allowed(const std::vector<std::string>& allow, std::string_view pointer);

// Throws core::UsageError if `recipe` differs from `stored` in keys that affect training and are
// not in `allow`. May differ: name, output, worker, log, threads, checkpoint, validate, storage,
// keys that affect only the speed or place of reading data or of activation memory, and the limit
// on bad samples. Returns true if the length (epochs, steps) differs.
bool check_differences(const recipe::Recipe& stored, const recipe::Recipe& recipe,
                       const std::vector<std::string>& allow, const std::string& where);

}  // namespace scaletrain::launcher
