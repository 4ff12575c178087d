// Threads of LibTorch's kernels on a rank's CPU.
#pragma once

#include <cstdint>

namespace scaletrain::train {

// Sets their number, 0: LibTorch's own choice, and starts them, before others take what the system
// allows: where it refuses one, OpenMP ends the process, and a thread of ours is an exception.
void start_cpu_threads(std::int64_t threads);

}  // namespace scaletrain::train
