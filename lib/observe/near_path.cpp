#include "lib/observe/near_path.h"

#include <filesystem>
#include <system_error>

namespace scaletrain::observe {

std::string near_path(const std::string& path) {
  std::error_code unknown;
  const std::string here = std::filesystem::current_path(unknown).string() + "/";
  const bool is_below = !unknown && path.starts_with(here) && path.size() > here.size();
  return is_below ? path.substr(here.size()) : path;
}

}  // namespace scaletrain::observe
