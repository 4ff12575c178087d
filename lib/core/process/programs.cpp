#include "lib/core/process/programs.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include "lib/core/error.h"

namespace scaletrain::core {

std::filesystem::path own_folder() {
  std::error_code ignored;
  return std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path();
}

std::string program_beside_us(const std::string& name) { return own_folder() / name; }

void* symbol_beside_us(const char* library, const char* symbol, const char* place,
                       const char* remedy, Symbols first) {
  const int flags = RTLD_NOW | RTLD_LOCAL | (first == Symbols::kOwn ? RTLD_DEEPBIND : 0);
  void* const opened = dlopen((own_folder() / library).c_str(), flags);
  void* const found = opened == nullptr ? nullptr : dlsym(opened, symbol);
  if (found == nullptr) {
    throw UsageError(place, fmt::format("{} could not be opened ({})", library, dlerror()), remedy);
  }
  return found;
}

}  // namespace scaletrain::core
