// Work for ATen's threads.
#pragma once

#include <cstdint>
#include <functional>

namespace scaletrain::units {

// Calls `body` with parts of [begin, end), of at least `grain` numbers but for the last, at the
// same time on as many threads as at::get_num_threads() says; within such a call all of it at once.
// The first exception of a part comes out of it. at::parallel_for itself has one thread in a file
// that is not compiled with -fopenmp.
void parallel_for(std::int64_t begin, std::int64_t end, std::int64_t grain,
                  const std::function<void(std::int64_t begin, std::int64_t end)>& body);

}  // namespace scaletrain::units
