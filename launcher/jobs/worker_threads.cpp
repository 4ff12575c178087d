#include "launcher/jobs/worker_threads.h"

#include <algorithm>

#include "lib/core/cores.h"
#include "lib/recipe/recipe.h"

namespace scaletrain::launcher {

std::int64_t recipe_threads(const recipe::Recipe& recipe, int local_world_size, std::size_t bound) {
  if (recipe.threads > 0) return recipe.threads;
  const std::int64_t share = std::max(1, core::usable_cores() / local_world_size);
  return bound == 0 ? share : std::min(share, static_cast<std::int64_t>(bound));
}

bool shares_cores(std::int64_t threads, int usable_cores, double busy, int machine_cores) {
  return threads > usable_cores || threads + static_cast<std::int64_t>(busy) > machine_cores;
}

}  // namespace scaletrain::launcher
