#include "launcher/jobs/checks/worker_program.h"

#include <fmt/format.h>

#include <filesystem>

#include "lib/core/error.h"
#include "lib/core/printable.h"
#include "lib/core/process/programs.h"
#include "lib/core/process/subprocess.h"
#include "lib/recipe/catalog/registry.h"
#include "lib/recipe/recipe.h"

namespace scaletrain::launcher {
namespace {

// The absolute path of --worker `flag`, which may be a name on PATH.
std::string find_worker(const std::string& flag) {
  if (const std::optional<std::string> path = core::find_program(flag)) {
    return std::filesystem::absolute(*path).lexically_normal();
  }
  throw core::UsageError("--worker",
                         fmt::format("\"{}\" is not an executable file", core::printable(flag)),
                         "name a worker program");
}

}  // namespace

std::vector<std::string> overrides_of(const LaunchOptions& options) {
  std::vector<std::string> overrides = options.set;
  if (!options.worker.empty()) {
    overrides.push_back(fmt::format("worker={}", find_worker(options.worker)));
  }
  return overrides;
}

recipe::CatalogPtr catalog_of_flag(const std::string& flag) {
  return flag.empty() ? recipe::built_in_catalog() : recipe::catalog_of(find_worker(flag));
}

std::string worker_of_flag(const char* command, const std::string& flag) {
  const std::string path = flag.empty() ? core::program_beside_us("scaletrain-worker") : flag;
  if (const std::optional<std::string> found = core::find_program(path)) return *found;
  throw core::UsageError(command,
                         fmt::format("\"{}\" is not an executable file", core::printable(path)),
                         "build it: ninja -C build/release scaletrain-worker");
}

std::string worker_of(const recipe::Recipe& recipe) {
  if (!recipe.worker.empty()) return recipe.worker;
  std::string path = core::program_beside_us("scaletrain-worker");
  if (core::find_program(path)) return path;
  throw core::UsageError(path, "is missing", "build it: ninja -C build/release scaletrain-worker");
}

}  // namespace scaletrain::launcher
