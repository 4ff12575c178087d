// "~" in paths that no shell has expanded: of a recipe, of --set KEY=PATH, of --flag=PATH.
#pragma once

#include <string>

namespace scaletrain::core {

// The path with "~" at its start replaced by $HOME (or the home of this user), "~NAME" by the home
// of that user. As in a shell, what names nobody stays as it is; a folder that is called ~ is
// "./~".
std::string expand_home(std::string path);

}  // namespace scaletrain::core
