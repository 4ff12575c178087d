// Paths as a person types them in the working directory.
#pragma once

#include <string>

namespace scaletrain::observe {

// "runs/digits" for "CWD/runs/digits" in the working directory CWD; a path that is
// not below it, a relative path and a URL stay as they are.
std::string near_path(const std::string& path);

}  // namespace scaletrain::observe
