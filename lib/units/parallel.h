// Parallel loops on ATen's threads.
#pragma once

#include <cstdint>
#include <functional>

namespace scaletrain::units {

// Calls `body` on parts of [begin, end), each of at least `grain` numbers but for the last, in
// parallel on at::get_num_threads() threads; a nested call runs serially. Rethrows the first
// exception. at::parallel_for itself is serial in a file that is compiled without -fopenmp.
void parallel_for(std::int64_t begin, std::int64_t end, std::int64_t grain,
                  const std::function<void(std::int64_t begin, std::int64_t end)>& body);

}  // namespace scaletrain::units
