#include "launcher/programs.h"

namespace scaletrain::launcher {

std::filesystem::path own_folder() {
  std::error_code ignored;
  return std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path();
}

std::string program_beside_us(const std::string& name) { return own_folder() / name; }

}  // namespace scaletrain::launcher
