// Expands "~" in paths that no shell has expanded: in recipes, --set KEY=PATH and --flag=PATH.
#pragma once

#include <string>

namespace scaletrain::core {

// Replaces "~" at the start of a path by $HOME (or this user's home), "~NAME" by the home of that
// user. A path with a home_fault() stays unchanged; a folder called ~ is "./~".
std::string expand_home(std::string path);

// Returns why the "~" or "~NAME" at the start of a path cannot be replaced; "" if it can, or if the
// path starts otherwise. NAME is made of letters, digits and "._-".
std::string home_fault(const std::string& path);

inline constexpr const char* kHomeRemedy =
    "correct the name; a file or folder whose own name begins with ~ is written ./~NAME";

}  // namespace scaletrain::core
