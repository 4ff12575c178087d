// How the folders of a run's checkpoints are called.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace scaletrain::format {

inline constexpr const char* kManifestName = "manifest.json";
inline constexpr const char* kOldSuffix = ".old";

// The step of "step-N" and "step-N.old"; nullopt for any other name.
std::optional<std::int64_t> step_of_name(const std::string& name);

// "NAME.tmp.PID" of this process, and the PID of such a name.
std::string temporary_name(const std::string& name);
std::optional<int> pid_of_temporary(const std::string& name);

// Names of what lies in `folder`, sorted; none where it is absent.
std::vector<std::string> names_in(const std::filesystem::path& folder);

}  // namespace scaletrain::format
