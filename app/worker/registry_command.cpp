#include "app/worker/registry_command.h"

#include "lib/core/disk/disk.h"
#include "lib/core/error.h"
#include "lib/recipe/catalog/registry.h"

namespace scaletrain::app {

int run_registry(int argc, char** argv, const recipe::Catalog& catalog) {
  if (argc != 3) {
    throw core::UsageError("registry", "a file to write is needed",
                           "scaletrain-worker registry FILE");
  }
  core::write_durably(core::system_disk(), argv[2], recipe::to_json(catalog));
  return 0;
}

}  // namespace scaletrain::app
