// Number of OpenMP threads of a worker, and how they wait.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

namespace scaletrain::recipe {
struct Recipe;
}

namespace scaletrain::launcher {

// Returns OMP_NUM_THREADS of this process; nullopt if it is not set or invalid.
std::optional<std::int64_t> threads_of_environment();

// Returns the threads of a recipe's worker: the recipe's `threads`, else the launcher's
// OMP_NUM_THREADS, else its share of the cores among `local_world_size` workers; at most the
// `bound` CPUs on which it may run (0: all).
std::int64_t recipe_threads(const recipe::Recipe& recipe, int local_world_size, std::size_t bound);

// True if `threads` threads of the job's local workers must share cores: this process may use
// fewer, or the `busy` threads of other processes take the machine's `machine_cores`. Waiting
// threads must not spin then, since they would keep the thread that they wait for from running.
bool shares_cores(std::int64_t threads, int usable_cores, double busy, int machine_cores);

}  // namespace scaletrain::launcher
