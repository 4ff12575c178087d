// Expands "~" in paths that no shell has expanded: in recipes, --set KEY=PATH and --flag=PATH.
#pragma once

#include <string>

namespace scaletrain::core {

// Replaces "~" at the start of a path by $HOME (or this user's home), "~NAME" by the home of that
// user. As in a shell, an unknown user's name stays unchanged; a folder called ~ is "./~".
std::string expand_home(std::string path);

}  // namespace scaletrain::core
