#include "launcher/jobs/worker_threads.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <system_error>

#include "lib/core/process/cores.h"
#include "lib/recipe/recipe.h"

namespace scaletrain::launcher {

std::optional<std::int64_t> threads_of_environment() {
  const char* const text = std::getenv("OMP_NUM_THREADS");
  if (text == nullptr) return std::nullopt;
  constexpr std::int64_t kMostThreads = 4096;
  std::int64_t threads = 0;
  const char* const end = text + std::strlen(text);
  const auto [rest, error] = std::from_chars(text, end, threads);
  // "4,2" is of nested regions: the first number is that of the outer one.
  if (error != std::errc() || (rest != end && *rest != ',') || threads < 1 ||
      threads > kMostThreads) {
    return std::nullopt;
  }
  return threads;
}

std::int64_t recipe_threads(const recipe::Recipe& recipe, int local_world_size, std::size_t bound) {
  if (recipe.threads > 0) return recipe.threads;
  if (const std::optional<std::int64_t> asked = threads_of_environment()) return *asked;
  const std::int64_t share = std::max(1, core::usable_cores() / local_world_size);
  return bound == 0 ? share : std::min(share, static_cast<std::int64_t>(bound));
}

bool shares_cores(std::int64_t threads, int usable_cores, double busy, int machine_cores) {
  return threads > usable_cores || threads + static_cast<std::int64_t>(busy) > machine_cores;
}

}  // namespace scaletrain::launcher
