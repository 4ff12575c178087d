// Identity and configuration of a run, as trackers receive them.
#pragma once

#include <filesystem>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "lib/track/record.h"

namespace scaletrain::track {

// Returns the key of a run: 16 hexadecimal digits, which its name and its first record decide.
std::string run_key(const std::string& name, const Record& first);

// Replaces user, password and query of the URLs in `value` by "***".
void hide_secrets(nlohmann::ordered_json& value);

// Returns recipe.json of a run without secrets; {} if there is none. Throws core::StorageError.
nlohmann::ordered_json run_recipe(const std::filesystem::path& run);

// Returns the values of nested objects by their keys, joined by dots: "optimizer.lr". Lists are
// JSON text.
std::map<std::string, std::string> flat_texts(const nlohmann::ordered_json& object);

enum class RunEnd { kFinished, kFailed, kStopped };

// How the run ended, by the files in its folder.
RunEnd run_end(const std::filesystem::path& run);

}  // namespace scaletrain::track
