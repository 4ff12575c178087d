// Threads of LibTorch's kernels on a rank's CPU.
#pragma once

#include <cstdint>

namespace scaletrain::train {

// Sets the number of LibTorch's intra-op threads, 0 for its own choice, and starts them. Call it
// before other threads start: if the system's limit on threads is reached, OpenMP aborts the
// process, while our own threads throw an exception.
void start_cpu_threads(std::int64_t threads);

}  // namespace scaletrain::train
