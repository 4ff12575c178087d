// How many threads of OpenMP a worker gets, and how they wait.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

namespace scaletrain::recipe {
struct Recipe;
}

namespace scaletrain::launcher {

// OMP_NUM_THREADS of this process; nullopt where it is not set, or no number of threads.
std::optional<std::int64_t> threads_of_environment();

// Threads of a recipe's worker: the recipe's `threads`, else the launcher's OMP_NUM_THREADS, else
// its share of the cores among `local_world_size` workers, and no more than the `bound` CPUs that
// it may run on (0: all).
std::int64_t recipe_threads(const recipe::Recipe& recipe, int local_world_size, std::size_t bound);

// True if `threads` threads of the job's workers here have to share cores: this process may use
// fewer, or the `busy` threads of other processes take the machine's `machine_cores`. A waiting
// thread must not spin then: it would keep the thread that it waits for from running.
bool shares_cores(std::int64_t threads, int usable_cores, double busy, int machine_cores);

}  // namespace scaletrain::launcher
