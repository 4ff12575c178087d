// Names of checkpoint folders and their files.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace scaletrain::format {

inline constexpr const char* kManifestName = "manifest.json";
inline constexpr const char* kModelFile = "model.safetensors";
inline constexpr const char* kEmaFile = "ema.safetensors";
inline constexpr const char* kOptimizerFile = "optimizer.safetensors";
inline constexpr const char* kStateFile = "state.json";
inline constexpr const char* kClassesFile = "classes.json";
inline constexpr const char* kRecipeFile = "recipe.json";
inline constexpr const char* kOldSuffix = ".old";

// Advice in errors about a damaged or inconsistent checkpoint.
inline constexpr const char* kOtherCheckpoint =
    "use another checkpoint; `scaletrain checkpoint verify RUN` shows which are complete";

// Returns the last name of a path, also for "runs/a/" and ".".
std::string name_of(const std::filesystem::path& path);

// "step-00001200".
std::string checkpoint_name(std::int64_t step);

// Returns the step of "step-N" and "step-N.old"; nullopt for any other name.
std::optional<std::int64_t> step_of_name(const std::string& name);

// True if a file name stays inside the checkpoint's folder and is not the manifest's.
bool is_plain_name(const std::string& name);

}  // namespace scaletrain::format
